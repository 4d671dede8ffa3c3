#!/usr/bin/env bash
# The programs inside the virtual kernel: fetched by name and checksum (packages.txt), put together as a
# small root file system. Read by build.sh, whose functions and settings it uses.
# shellcheck disable=SC2154 # here, work, archives are build.sh's

packages_file=$here/packages.txt
EXPECTED_PROGRAMS_BYTES=15500000
# The compiler; our own programs, by what they become; and where the headers lie that iproute2 lacks.
compiler=(gcc)
declare -A own_programs=(['sbin/guest-init']=$here/guest-init.c ['usr/bin/ss-sampler']=$here/ss-sampler.c)
netlink_errors=$here/netlink-errors.h
# Libraries that programs name and nothing here calls: OpenSSL (iperf3's logins, encrypted packets in tcpdump),
# SCTP, host names in other letters, D-Bus. A stand-in answers each call with 0. With the version that they have.
absent=(libcrypto.so.3:OPENSSL_3.0.0 libsctp.so.1:VERS_1 libidn2.so.0:IDN2_0.0.0 libdbus-1.so.3:LIBDBUS_1_3)
# What only those would load; and of Python what tests it, teaches it, or needs a library that isn't here.
only_theirs=(ssl systemd gcrypt gpg-error lzma zstd lz4 unistring expatw psx)
python_without=(test pydoc_data turtle.py venv sqlite3 curses dbm
  lib-dynload/{_ssl,_hashlib,_lzma,_bz2,_sqlite3,_curses,_curses_panel,_dbm,_uuid,_crypt,nis,readline,ossaudiodev}.*
  lib-dynload/{_test,_ctypes_test,_xx,xx}'*')

# packages: the list's lines without its comments.
# In bash alone: the kernel's key follows from it, and is asked for on machines that have little else.
packages() {
  local line
  while IFS= read -r line; do
    [[ ! $line =~ ^[0-9a-f]{64}\  ]] || printf '%s\n' "$line"
  done <"$packages_file"
}

# fetch_programs: every file of the list, into $work/programs.
fetch_programs() {
  local sha256 place _ files=()
  while read -r sha256 place _; do files+=("$place" "$sha256"); done < <(packages)
  say "fetching the programs that run inside: $((${#files[@]} / 2)) files, $(((EXPECTED_PROGRAMS_BYTES + 999999) / 1000000)) MB"
  fetch_pinned "$work/programs" "the programs" "$EXPECTED_PROGRAMS_BYTES" "${files[@]}" ||
    die "no mirror of this machine's has all of them; asked: $(asked_archives) ($(apt_complaint)). Is there a network, and does it reach them? Else set MEASURETWICE_MIRROR to another mirror. $other_ways"
}

# build_iproute2: ip, tc, ss and nstat in one piece each. What they can do follows from this text, not
# from the libraries that the machine happens to have.
build_iproute2() {
  local source=$work/iproute2
  mkdir -p "$source"
  tar -xJf "$work"/programs/iproute2_*.orig.tar.xz -C "$source" --strip-components=1 || return
  mkdir -p "$source/include/libmnl"
  cp -- "$netlink_errors" "$source/include/libmnl/libmnl.h"
  cat >"$source/config.mk" <<'END'
NEED_STRLCPY := y
TC_CONFIG_NO_XT := y
IP_CONFIG_SETNS := y
CFLAGS += -DHAVE_LIBMNL -DNEED_STRLCPY -DHAVE_SETNS -DHAVE_HANDLE_AT
CC := $(COMPILER)
HOSTCC := gcc
AR := ar
%.o: %.c
	$(CC) $(CFLAGS) $(EXTRA_CFLAGS) -c -o $@ $<
END
  # The switch for shared libraries must reach every makefile, and no other may.
  (cd "$source" && kernel_make make -j"$(nproc)" COMPILER="${compiler[*]}" SHARED_LIBS=n LDFLAGS=-static WFLAGS=-w \
    NETNS_RUN_DIR=/run/netns SUBDIRS='lib ip tc misc')
}

# make_root ROOT: the root file system of the guest.
make_root() {
  local root=$1 _ place called taken applet program folder
  mkdir -p "$root"/{bin,sbin,etc,proc,sys,dev,run,tmp,root,usr/{bin,sbin},var}
  while read -r _ place called taken; do
    [[ $place == *.deb && $called != build ]] || continue
    # shellcheck disable=SC2086 # patterns, each a word of its own, for tar and not for the shell
    (set -f && package_files "$work/programs/${place##*/}" |
      tar -x -C "$root" --no-same-owner --wildcards --exclude='*/sitecustomize.py' $taken) || return
  done < <(packages)
  for program in "${!own_programs[@]}"; do
    kernel_make "${compiler[@]}" -O2 -Wall -static -s -o "$root/$program" "${own_programs[$program]}" || return
  done
  for program in ip/ip tc/tc misc/ss misc/nstat; do
    strip -o "$root/usr/bin/${program#*/}" "$work/iproute2/$program" || return
  done
  cp -R -- "$work/iproute2/etc/iproute2" "$root/etc/"
  ln -s bash-static "$root/bin/bash"
  ln -s bash-static "$root/bin/sh"
  ln -s mawk "$root/usr/bin/awk"
  [[ ! -e $root/usr/bin/python3.11 ]] || ln -s python3.11 "$root/usr/bin/python3"
  # All else that scripts call is one program, which goes by the name it is called by.
  for applet in $("$root/bin/busybox" --list); do
    for folder in bin sbin usr/bin usr/sbin; do
      [[ ! -e $root/$folder/$applet && ! -L $root/$folder/$applet ]] || continue 2
    done
    ln -s ../../bin/busybox "$root/usr/bin/$applet"
  done
  printf '%s\n' 'root:x:0:0:root:/tmp:/bin/bash' 'tcpdump:x:100:100::/tmp:/bin/false' \
    'nobody:x:65534:65534:nobody:/tmp:/bin/false' >"$root/etc/passwd"
  printf '%s\n' 'root:x:0:' 'tty:x:5:' 'tcpdump:x:100:' 'nogroup:x:65534:' >"$root/etc/group"
  printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
  printf 'hosts: files\n' >"$root/etc/nsswitch.conf"
  ln -s /proc/mounts "$root/etc/mtab"
  find "$root" -type d -exec chmod 755 {} +
}

# add_absent ROOT ARCHITECTURE: the stand-ins for what nothing calls.
add_absent() {
  local root=$1 folder=$1/usr/lib/$2 library version name
  local -a names
  for library in "${absent[@]}"; do
    version=${library#*:} library=${library%:*}
    mapfile -t names < <(find "$root/bin" "$root/usr/bin" "$folder" -type f ! -name "$library" \
      -exec nm -D --undefined-only --with-symbol-versions {} + 2>/dev/null |
      sed -nE "s/^ *U ([A-Za-z0-9_]+)@$version\$/\1/p" | LC_ALL=C sort -u)
    ((${#names[@]})) || die "nothing needs $library any more: take it out of absent"
    for name in "${names[@]}"; do printf 'int %s(void) { return 0; }\n' "$name"; done >"$work/absent.c"
    {
      printf '%s {\n  global:\n' "$version"
      printf '    %s;\n' "${names[@]}"
      printf '  local: *;\n};\n'
    } >"$work/absent.map"
    find "$root/lib" "$root/usr/lib" -name "${library%%.so*}.so.*" -delete
    "${compiler[@]}" -Os -fPIC -shared -nostdlib -s "-Wl,-soname,$library" "-Wl,--version-script=$work/absent.map" \
      -o "$folder/$library" "$work/absent.c"
  done
}

# leave_out ROOT: what no program here calls once the stand-ins are there, a quarter of the whole.
leave_out() {
  local root=$1 name
  for name in "${only_theirs[@]}"; do find "$root/lib" "$root/usr/lib" -maxdepth 2 -name "lib$name.so.*" -delete; done
  # shellcheck disable=SC2086 # patterns
  (cd "$root/usr/lib/python3.11" && for name in "${python_without[@]}"; do rm -rf -- $name; done)
}

# programs_json: the versions, as fields of kernel.json.
programs_json() {
  local _ place called version separator=''
  while read -r _ place called _; do
    [[ $called != - && $called != build ]] || continue
    version=${place##*/}
    version=${version#*_}
    version=${version%%[_]*}
    printf '%s\n    "%s": "%s"' "$separator" "$called" "${version%.orig.tar.xz}"
    separator=,
  done < <(packages)
}
