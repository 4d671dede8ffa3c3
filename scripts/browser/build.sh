#!/usr/bin/env bash
# Gets the browser's machine ready and prints the folder it is in: found in the cache, unpacked from machines/, or built
# from source and started once. Everything else that it has to say goes to stderr.
set -euo pipefail

# Part of the cache key: raise it when these scripts make something else of the same inputs.
RECIPE=1

# The emulator, as its makers publish it: https://www.npmjs.com/package/v86
V86_VERSION=0.5.462
V86_SHA512=aKPX7DdzqAKFRv2omDkqSju0uEzlOxzo+II82J5UT7+tZNsboA6kyaNq9NKAnxvo9hzpJ8dQj7vcvcz0J7I2QA==

# What a build takes, measured.
EXPECTED_FILES=805
NEEDED_MIB=900
EXPECTED_TIME='about five minutes on two cores'

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
kernel_scripts=$(cd -- "$here/../kernel" && pwd)
machine_scripts=$(cd -- "$here/../../docs/assets/machine" && pwd)
me=browser/${0##*/}
kind=browser
shipped_as=browser
arch=i386
# shellcheck source=scripts/kernel/tools.sh
. "$kernel_scripts/tools.sh"
# shellcheck source=scripts/kernel/source.sh
. "$kernel_scripts/source.sh"
# shellcheck source=scripts/kernel/programs.sh
. "$kernel_scripts/programs.sh"
# shellcheck source=scripts/browser/npm.sh
. "$here/npm.sh"

patches=("$kernel_scripts"/patches/0006-*.patch "$kernel_scripts"/patches/0010-*.patch "$here"/patches/*.patch
  "$kernel_scripts"/options/*.patch "$kernel_scripts"/faster/0004-*.patch)
# shellcheck disable=SC2034 # for programs.sh
{
  EXPECTED_PROGRAMS_BYTES=19200000
  own_programs=(['sbin/guest-init']=$here/guest-init.c ['usr/bin/ss-sampler']=$kernel_scripts/ss-sampler.c)
  netlink_errors=$kernel_scripts/netlink-errors.h
}

usage() {
  cat <<END
Usage: $me [option]
Gets the browser's machine ready and prints its folder: state.bin.zst, a started machine; libv86.mjs and v86.wasm,
the emulator; python.tar.gz, what node scripts in Python need besides; machine.json.

  (no option)         find it in the cache, unpack the one that comes with the checkout, or build it from
                      Debian's $PIN_PACKAGE $PIN_VERSION, the programs in packages.txt, and v86 $V86_VERSION
  --no-build          the same without building: exit with 3 where it would be
  --keep-sources DIR  keep all that a build fetches in DIR
  --sources DIR       take it from there instead of a mirror, as far as it is there
  --path              print the folder if it is ready, else exit with 3
  --key               print the cache key
  --counting DIR      put into DIR a machine whose kernel counts how often each branch is taken (record_profile.py)
  --apart DIR         put into DIR a machine each of whose hot functions has a page of its own (order_functions.py)
  --needs             print what this machine lacks to get it ready, one Debian package a line

MEASURETWICE_KERNEL=build builds it also where the checkout brings it.
The cache is \${MEASURETWICE_CACHE:-\${XDG_CACHE_HOME:-~/.cache}/measuretwice}/browser.
Exit codes: 0 ready, 1 it can't be got ready (one line says why), 2 wrong usage, 3 not ready (--path, --no-build).
END
}

# --- what is wanted ------------------------------------------------------------------------------

cache_key() {
  {
    printf '%s\n' "$RECIPE" "$PIN_PACKAGE" "$PIN_VERSION" "$PIN_SHA256" "$V86_VERSION" "$V86_SHA512" \
      "$(configuration | hash_of)" "$(hash_of_patches "${patches[@]}")" "$(packages | hash_of)" \
      "$(hash_of_file "$kernel_scripts/ss-sampler.c")" "$(hash_of_file "$here/guest-init.c")" "$(hash_of_file "$here/hot-functions.txt")" \
      "$(hash_of_file "$here/profile.tar.xz")" "$(hash_of_file "$here/save.mjs")" \
      "$(hash_of_file "$netlink_errors")" "$(hash_of_file "$machine_scripts/machine.mjs")"
  } | hash_of | cut -c1-20
}

# configuration: the virtual kernel's without what only a program has, and what differs here.
configuration() {
  local uml='64BIT|NO_IOMEM|STATIC_LINK|UML_[A-Z_]*|HZ|HOSTFS|STDERR_CONSOLE|NULL_CHAN|PTY_CHAN|TTY_CHAN|CON_ZERO_CHAN|CON_CHAN'
  grep -vE "^CONFIG_($uml)=" "$kernel_scripts/config"
  cat -- "$here/config"
}

is_ready() {
  [[ -f $1/machine.json && -f $1/state.bin.zst && -f $1/python.tar.gz && -f $1/libv86.mjs && -f $1/v86.wasm ]] &&
    [[ -z $keep_sources ]] &&
    [[ -z $on_purpose || $(json_field "$1/machine.json" origin) == built ]]
}

missing_tools() {
  local tool_package
  for tool_package in gcc:gcc make:make flex:flex bison:bison bc:bc patch:patch xz:xz-utils \
    ar:binutils flock:util-linux awk:mawk zstd:zstd node:nodejs npm:npm openssl:openssl; do
    command -v "${tool_package%%:*}" >/dev/null || printf '%s\n' "${tool_package#*:}"
  done
}

# lacking: the same where it would be built now.
lacking() {
  is_ready "$root/$key" || comes_with_checkout || missing_tools
}

require_tools() {
  local -a missing
  is_x86_64 || die "the browser's machine is built on x86-64 Linux only, this is $(uname -s) on $(uname -m)"
  mapfile -t missing < <(missing_tools)
  ((! ${#missing[@]})) ||
    die "to build the browser's machine these Debian packages are missing: sudo apt install ${missing[*]}"
}

# Another version would be another machine.
fetch_nearest_source() {
  die "no mirror of this machine's has $PIN_PACKAGE $PIN_VERSION any more, or none can be reached; asked: $(asked_archives) ($(apt_complaint)). $other_ways"
}

# --- building ------------------------------------------------------------------------------------

# put_hot_together: what calls each other stands in one page of the kernel's text (patch 0003), since v86 compiles page by
# page, and goes back to its loop for each step from one to another. An empty line in the list begins a page.
# order_functions.py made it, from how often each function came after another in four trials.
put_hot_together() {
  local name
  while read -r name; do
    if [[ $name ]]; then printf '*(.text.hot.%s .text.%s)\n' "$name" "$name"; else printf '. = ALIGN(PAGE_SIZE);\n'; fi
  done <"$here/hot-functions.txt" >"$work/source/arch/x86/kernel/hot-functions.lds"
  kernel_flags=-ffunction-sections
}

# put_apart: each in a page of its own, so that steps between them can be counted.
put_apart() {
  local name
  while read -r name; do
    [[ ! $name ]] || printf '. = ALIGN(PAGE_SIZE);\n*(.text.hot.%s .text.%s)\n' "$name" "$name"
  done <"$here/hot-functions.txt" >"$work/source/arch/x86/kernel/hot-functions.lds"
  printf '. = ALIGN(PAGE_SIZE);\n' >>"$work/source/arch/x86/kernel/hot-functions.lds"
  use_profile
}

# use_profile: files that most packets pass through are compiled by what record_profile.py counted in trials: what was never
# or hardly reached stands apart from what often was, and v86 has less to compile. Another version of gcc than its takes no
# notice; the bytes of runs are the same.
use_profile() { tar -xJf "$here/profile.tar.xz" -C "$work/source"; }

# count_instead: so that there is something to use.
count_instead() {
  local file
  while read -r file; do : >"$work/source/$file.count"; done <"$here/profiled-files.txt"
}

# unpack_for_build: a C library for 32 bits, which the compiler of any distribution can use, and a BIOS.
unpack_for_build() {
  local _ place called libraries=$work/sysroot/usr/lib
  mkdir -p "$work/sysroot"
  while read -r _ place called _; do
    [[ $called == build ]] || continue
    package_files "$work/programs/${place##*/}" | tar -x -C "$work/sysroot" --no-same-owner
  done < <(packages)
  cat >"$work/cc32" <<END
#!/bin/sh
exec gcc -m32 -march=i686 -nostdinc -isystem "\$(gcc -print-file-name=include)" \\
  -isystem "$work/sysroot/usr/include/i386-linux-gnu" -isystem "$work/sysroot/usr/include" \\
  -B"$libraries/gcc/i686-linux-gnu/12/" -B"$libraries/i386-linux-gnu/" \\
  -L"$libraries/gcc/i686-linux-gnu/12" -L"$libraries/i386-linux-gnu" "\$@"
END
  chmod +x "$work/cc32"
  compiler=("$work/cc32")
}

# write_initrd ROOT FILE: with the kernel's own tool; no owners, one date.
write_initrd() {
  local root=$1 entry
  while IFS= read -r entry; do
    if [[ -L $root/$entry ]]; then
      printf 'slink /%s %s 777 0 0\n' "$entry" "$(readlink "$root/$entry")"
    elif [[ -d $root/$entry ]]; then
      printf 'dir /%s 755 0 0\n' "$entry"
    else
      printf 'file /%s %s %s 0 0\n' "$entry" "$root/$entry" "$([[ -x $root/$entry ]] && echo 755 || echo 644)"
    fi
  done < <(cd "$root" && find . -mindepth 1 -printf '%P\n' | LC_ALL=C sort) >"$work/initrd.list"
  "$work/source/usr/gen_init_cpio" -t 1700000000 "$work/initrd.list" >"$2"
}

# set_python_apart ROOT: not in the machine, since most runs do without. Plain files, under the names they are called by.
set_python_apart() {
  local root=$1 library
  mkdir -p "$work"/python/{lib,usr/bin,usr/lib} &&
    rm "$root/usr/bin/python3" &&
    mv -- "$root/usr/bin/python3.11" "$work/python/usr/bin/python3" &&
    mv -- "$root/usr/lib/python3.11" "$work/python/usr/lib/" || return
  for library in libexpat.so.1 libz.so.1; do
    cp -L -- "$(find "$root" -name "$library" | head -n 1)" "$work/python/lib/$library" &&
      find "$root" -name "$library*" -delete || return
  done
  find "$root" -name 'libexpatw.so*' -delete
}

pack_python() {
  tar -C "$work/python" --format=ustar --sort=name --mtime=@1700000000 --owner=0 --group=0 --numeric-owner --mode=755 -cf - . |
    gzip -9n >"$1/python.tar.gz"
}

make_programs() {
  build_iproute2 && make_root "$work/root" && add_absent "$work/root" i386-linux-gnu && set_python_apart "$work/root" &&
    write_initrd "$work/root" "$work/machine/initrd"
}

start_once() { node "$here/save.mjs" "$work/machine" >"$work/clock" 2>>"$log" </dev/null; }
compress() { zstd -q --ultra -22 "$work/machine/state.bin" -o "$1/state.bin.zst" 2>>"$log"; }

# assemble DIRECTORY: the folder as it will stand in the cache.
assemble() {
  local ready=$1
  mkdir -p "$ready" "$work/machine"
  run_job make_programs 2>>"$log" || die_with_log "the programs inside can't be put together"
  cp -- "$work/source/arch/x86/boot/bzImage" "$work/machine/kernel"
  cp -- "$work/sysroot/usr/share/seabios/bios.bin" "$work/machine/seabios.bin"
  cp -- "$work/sysroot/usr/share/seabios/vgabios-stdvga.bin" "$work/machine/vgabios.bin"
  cp -- "$work/v86/build/libv86.mjs" "$work/v86/build/v86.wasm" "$work/machine/"
  say "starting the machine once, and saving it"
  run_job start_once || die_with_log "the machine doesn't start"
  run_job compress "$ready" || die_with_log "the saved machine can't be compressed"
  pack_python "$ready"
  cp -- "$work/v86/build/libv86.mjs" "$work/v86/build/v86.wasm" "$ready/"
  cp -- "$work/v86/LICENSE" "$ready/v86-LICENSE.txt"
  cat >"$ready/machine.json" <<END
{
  "version": "$(cat "$work/source/include/config/kernel.release")",
  "key": "$key",
  "source": "$source_name",
  "source_version": "$source_version",
  "source_sha256": "$source_sha256",
  "config_sha256": "$(configuration | hash_of)",
  "patches_sha256": "$(hash_of_patches "${patches[@]}")",
  "packages_sha256": "$(packages | hash_of)",
  "v86": "$V86_VERSION",
  "programs": {$(programs_json)
  },
  "compiler": "$(gcc --version | head -n 1 | tr -d '"')",
  "clock_address": $(cat "$work/clock"),
  "bytes": $(($(stat -c %s "$ready/state.bin.zst") + $(stat -c %s "$ready/v86.wasm") + $(stat -c %s "$ready/libv86.mjs"))),
  "origin": "built"
}
END
  write_sums "$ready"
}

print_path() {
  is_ready "$(cache_root)/$(cache_key)" || exit 3
  printf '%s/%s\n' "$(cache_root)" "$(cache_key)"
}

# build READY PROFILE: from source, into READY; PROFILE is use_profile, count_instead or put_apart.
build() {
  require_disk "$NEEDED_MIB"
  say "building the browser's machine, once: $EXPECTED_TIME, $NEEDED_MIB MB of disk meanwhile, 10 MB afterwards"
  fetch_npm v86 "$V86_VERSION" "$V86_SHA512" "$work/v86"
  find_archives
  fetch_programs
  fetch_debian_source
  say "unpacking and patching $source_name $source_version"
  unpack_source
  apply_patches "${patches[@]}"
  put_hot_together
  "$2"
  unpack_for_build
  configuration >"$work/config"
  configure "$work/config"
  compile bzImage
  assemble "$1"
}

# make_for_recording: a machine that isn't kept, with what tells where its kernel's functions are.
make_for_recording() {
  root=$(cache_root) key=recording
  require_tools
  take_lock
  begin_build
  build "$recording" "$how"
  cp -- "$work/source/System.map" "$work/source/vmlinux" "$recording/"
}

get_ready() {
  local ready
  root=$(cache_root)
  key=$(cache_key)
  if is_ready "$root/$key"; then
    printf '%s\n' "$root/$key"
    return
  fi
  if ! comes_with_checkout; then
    [[ -z $no_build ]] || exit 3
    say_why_built
    require_tools
  fi
  take_lock
  if is_ready "$root/$key"; then
    printf '%s\n' "$root/$key"
    return
  fi
  ready=$root/.ready-$key
  begin_build
  if comes_with_checkout; then
    take_shipped "$ready" machine.json
    keep_build "$ready"
    printf '%s\n' "$root/$key"
    return
  fi
  build "$ready" use_profile
  keep_build "$ready"
  say "the browser's machine is ready after $SECONDS s"
  printf '%s\n' "$root/$key"
}

action=get_ready no_build='' recording='' how=''
while (($#)); do
  case $1 in
    --help | -h) action=usage ;;
    --path) action=print_path ;;
    --key) action=cache_key ;;
    --needs) action=print_needs ;;
    --no-build) no_build=yes ;;
    --counting | --apart)
      (($# >= 2)) || die_usage "$1 needs a folder"
      action=make_for_recording recording=$2
      if [[ $1 == --apart ]]; then how=put_apart; else how=count_instead; fi
      shift
      ;;
    --sources | --keep-sources)
      (($# >= 2)) || die_usage "$1 needs a folder"
      take_folder "$1" "$2"
      shift
      ;;
    *) die_usage "unknown option $1" ;;
  esac
  shift
done
"$action"
