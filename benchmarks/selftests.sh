#!/usr/bin/env bash
# Linux's own network selftests, from the pinned source that the virtual kernel is built from, compiled for this machine.
# Prints the folder of the cache that they are in, as it lies in tools/testing/selftests. Beside them, in bin/, are ip, tc
# and their like of the kernel's own version: with older ones many tests can't say what they want. Called by selftests.py; three
# minutes the first time.
set -euo pipefail

# Raise it when something else is made of the same source.
RECIPE=2
NEEDED_MIB=900
IPROUTE2_PLACE=pool/main/i/iproute2/iproute2_7.2.0.orig.tar.xz
IPROUTE2_SHA256=4c2fa124c2cf0afd7ca34d1eeacba6ba048a56f6374e2aab93dafbdbd4eea9c0
IPROUTE2_BYTES=971084

kernel_scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/kernel" && pwd)
me=selftests.sh kind=selftests shipped_as='' arch=x86_64
# shellcheck source=scripts/kernel/tools.sh
. "$kernel_scripts/tools.sh"
# shellcheck source=scripts/kernel/source.sh
. "$kernel_scripts/source.sh"

# What the tests and their headers are made of; drivers and other processors are left packed.
members=(Makefile Kbuild include arch/x86 scripts usr Documentation/netlink tools)

unpack_tests() {
  write_tarball 2>>"$log" | xz -dcT0 2>>"$log" |
    tar -x -C "$work/source" --strip-components=1 --wildcards --no-wildcards-match-slash \
      "${members[@]/#/*/}" 2>>"$log"
}

# A program that can't be compiled here is a test that can't run, which selftests.py says.
make_tests() {
  local folder tests=$work/source/tools/testing/selftests
  cd "$work/source" && kernel_make make ARCH="$arch" headers || return
  # Without what needs netlink's generated headers: their generator needs Python packages, and minutes.
  for folder in net/lib net net/af_unix; do
    kernel_make make -k -j"$(nproc)" -C "$tests/$folder" YNL_GEN_FILES= YNL_GEN_PROGS= || true
  done
}

make_iproute2() {
  mkdir -p "$work/iproute2"
  tar -xJf "$work/fetched/${IPROUTE2_PLACE##*/}" -C "$work/iproute2" --strip-components=1 &&
    cd "$work/iproute2" && kernel_make ./configure && kernel_make make -j"$(nproc)" SUBDIRS='lib ip tc bridge misc'
}

assemble_tests() { # DIRECTORY
  local tests=$work/source/tools/testing/selftests
  mkdir -p "$1"/{bin,net}
  cp -- "$work"/iproute2/{ip/ip,tc/tc,bridge/bridge,misc/ss,misc/nstat} "$1/bin/" || return
  cp -r -- "$tests"/{kselftest,kselftest.h,tc-testing} "$1/" || return
  cp -r -- "$tests"/net/{lib,af_unix,forwarding} "$1/net/" || return
  find "$tests/net" -maxdepth 1 -type f ! -name '*.[ch]' -exec cp -t "$1/net" -- {} + || return
  rm -rf -- "$1"/net/lib/tools
}

root=$(cache_root)
key=$(printf '%s\n' "$RECIPE" "$PIN_SHA256" "$IPROUTE2_SHA256" | hash_of | cut -c1-20)
if [[ ! -d $root/$key ]]; then
  take_lock
  begin_build
  require_disk "$NEEDED_MIB"
  take_folder --keep-sources "$root/sources"
  sources=$root/sources
  find_archives
  fetch_debian_source
  $pinned || die "$PIN_PACKAGE $PIN_VERSION is no longer to be had: the tests must be of the kernel's own source"
  fetch_pinned "$work/fetched" "iproute2" "$IPROUTE2_BYTES" "$IPROUTE2_PLACE" "$IPROUTE2_SHA256" ||
    die "no mirror of this machine's has ${IPROUTE2_PLACE##*/} any more: put it into $root/sources"
  say "unpacking and compiling Linux's own network tests: three minutes"
  mkdir -p "$work/source"
  run_job unpack_tests || die_with_log "the tests can't be unpacked"
  run_job make_iproute2 || die_with_log "iproute2 can't be compiled"
  run_job make_tests || die_with_log "the tests can't be compiled"
  ready=$root/.ready-$key
  run_job assemble_tests "$ready" || die_with_log "the tests can't be put together"
  keep_build "$ready"
fi
printf '%s\n' "$root/$key"
