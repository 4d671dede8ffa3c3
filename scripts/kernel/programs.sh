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
    die "no mirror of this machine's has all of them; asked: $(asked_archives) ($(apt_complaint)). Is there a network, and does it reach them? Else set MEASURETWICE_MIRROR to another mirror, or MEASURETWICE_KERNEL to a prebuilt archive, which holds them"
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
