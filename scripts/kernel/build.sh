#!/usr/bin/env bash
# Gets the virtual kernel ready and prints the folder it is in: found in the cache, unpacked from machines/, or built
# from source where a patch or a setting was changed. Everything else that it has to say goes to stderr.
set -euo pipefail

# Part of the cache key: raise it when this script or programs.sh makes something else of the same inputs.
RECIPE=2
# The same where no byte of a run changes by it: the kernel is made anew, and plans name it as before.
LAYOUT=1

# What a build takes, measured.
EXPECTED_FILES=683
EXPECTED_FILES_OF_MORE=915
NEEDED_MIB=700
# of another version than the pinned one, the whole tree is unpacked
NEEDED_UNPINNED_MIB=2300
EXPECTED_TIME='about four minutes on two cores'

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
me=${0##*/}
kind=kernel
shipped_as=kernel
arch=um
# shellcheck source=scripts/kernel/tools.sh
. "$here/tools.sh"
# shellcheck source=scripts/kernel/source.sh
. "$here/source.sh"
# shellcheck source=scripts/kernel/programs.sh
. "$here/programs.sh"

usage() {
  cat <<END
Usage: $me [option]
Gets the virtual kernel ready and prints its folder: linux, config, kernel.json, and in root/
the programs that run inside.

  (no option)         find it in the cache, unpack the one that comes with the checkout, or build it from
                      Debian's $PIN_PACKAGE $PIN_VERSION and the programs in packages.txt
  --no-build          the same without building: exit with 3 where it would be
  --keep-sources DIR  keep all that a build fetches in DIR
  --sources DIR       take it from there instead of a mirror, as far as it is there
  --tarball FILE      build from this .tar.xz of the kernel's source (Debian's or Linux's own)
  --sha256 HEX        the checksum that the tarball must have
  --path              print the folder if it is ready, else exit with 3
  --key               print the cache key
  --needs             print what this machine lacks to get it ready, one Debian package a line
  --check             print what this machine has for a build and a run, as JSON
  --smoke             boot the ready kernel once, for a second
  --counting          build one that counts what of it runs how often, for profile.sh
  --stock             build Linux as it is, with none of the patches here, for benchmarks/
  --more FILE         build one with FILE's settings besides, for benchmarks/
  --show-apt-sources DIRECTORY CODENAME
                      print which entries of an apt configuration would be used, best first

MEASURETWICE_KERNEL=build builds it also where the checkout brings it.
The cache is \${MEASURETWICE_CACHE:-\${XDG_CACHE_HOME:-~/.cache}/measuretwice}/kernel.
Exit codes: 0 ready, 1 it can't be got ready (one line says why), 2 wrong usage, 3 not ready (--path, --no-build).
END
}

# --- what is wanted, and where it goes -----------------------------------------------------------

patches=("$here"/patches/*.patch)
# These decide what the kernel's process may reach (confine/) and how fast it is (faster/), and no byte of a run
# (tests/security/test_same_bytes.py).
sparing=("$here"/confine/*.patch "$here"/faster/*.patch)
# What a kernel can do besides when it is asked to: no byte of a run that doesn't ask.
options=("$here"/options/*.patch)
# What of the kernel runs how often, counted by profile.sh in the labs' own trials, for the compiler that counted:
# another can't read it, and goes without.
profile=$here/profile.tar.xz
profile_compiler=12.2.0

# What decides the bytes of a run: by this plans name the kernel.
results_key() {
  {
    printf '%s\n' "$RECIPE" "$PIN_PACKAGE" "$PIN_VERSION" "$PIN_SHA256" \
      "$(hash_of_file "$here/config")" "$(hash_of_patches "${patches[@]}")" \
      "$(hash_of_file "$here/ss-sampler.c")" "$(hash_of_file "$here/guest-init.c")" \
      "$(packages | hash_of)" \
      "$(hash_of_file "$here/netlink-errors.h")"
    if [[ $more ]]; then hash_of_file "$more"; fi
  } | hash_of | cut -c1-20
}

# All that is built: the name of the kernel's folder in the cache.
cache_key() {
  {
    results_key && hash_of_patches "${sparing[@]}" "${options[@]}" && printf '%s\n' "$LAYOUT"
    if $counting; then printf 'counting\n'; elif $stock; then printf 'stock\n'; else hash_of_file "$profile" && printf '%s\n' "$kernel_flags" "$counted_flags"; fi
  } | hash_of | cut -c1-20
}

# What is compiled otherwise than Linux does. All of the kernel lies in the lowest two gigabytes, so that a call needs
# no address in a register (um asks for -mcmodel=large); copies of a known size are moves, not calls. A run of lab 02
# takes an eighth less (0.88, six pairs), a short one, mostly start, hardly less. The same bytes come out of a run, as
# with another compiler.
kernel_flags='-mcmodel=small -fbuiltin -O3'
# What is compiled so that it counts itself (profile.sh): what each edge of a function was taken, at which sizes.
counting_flags='-fprofile-generate -fprofile-update=single'
# ... and what is compiled by such counts. Kernel threads never return from some functions, so that counts don't add up;
# and a function that has changed since goes without.
counted_flags='-fprofile-use -fprofile-correction -Wno-missing-profile -Wno-error=coverage-mismatch'

# lacks FOLDER: what it lacks of a kernel, nothing where it is one. kernel.json is written last.
# Programs that a copy of the cache made into plain files get their mode back: to build anew takes minutes.
lacks() {
  local file programs=(linux root/sbin/guest-init root/bin/bash)
  for file in kernel.json config "${programs[@]}"; do
    [[ -f $1/$file ]] || { printf '%s is missing' "$file" && return; }
  done
  for file in "${programs[@]}"; do
    [[ -x $1/$file ]] || find "$1/linux" "$1"/root/{bin,sbin,usr/bin,usr/sbin} -type f -exec chmod +x {} + 2>/dev/null || true
    [[ -x $1/$file ]] || { printf "%s can't be executed" "$file" && return; }
  done
}

is_ready() {
  [[ -z $(lacks "$1") ]] && [[ -z $keep_sources ]] &&
    [[ -z $on_purpose || $(json_field "$1/kernel.json" origin) == built ]]
}

# --- requirements --------------------------------------------------------------------------------

# The Debian packages of the tools that a build lacks, one a line.
missing_packages() {
  local tool_package
  for tool_package in gcc:gcc make:make flex:flex bison:bison bc:bc patch:patch xz:xz-utils ar:binutils \
    flock:util-linux awk:mawk; do
    command -v "${tool_package%%:*}" >/dev/null || printf '%s\n' "${tool_package#*:}"
  done
  if command -v gcc >/dev/null; then
    # gcc names a library's path only where it finds the library.
    [[ $(gcc -print-file-name=libc.a) == */* ]] || printf 'libc6-dev\n'
  else
    printf 'libc6-dev\n'
  fi
}

# lacking: the same where it would be built now.
lacking() {
  is_ready "$root/$key" || comes_with_checkout || missing_packages
}

require_tools() {
  local -a missing
  is_x86_64 || die "the virtual kernel runs on x86-64 Linux only, this is $(uname -s) on $(uname -m): use --on host, or nodes over ssh"
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]})); then
    die "to build the kernel these Debian packages are missing: sudo apt install ${missing[*]}"
  fi
}

make_programs() { make_root "$1" && leave_out "$1" && add_absent "$1" x86_64-linux-gnu; }

# used_profile: its checksum, or nothing where this machine's compiler can't read it.
used_profile() {
  ! $stock && [[ -f $profile && $(gcc -dumpfullversion) == "$profile_compiler" ]] || return 0
  hash_of_file "$profile"
}

# take_profile: the counts beside the files that they are of, where the compiler looks for them.
take_profile() {
  if $stock; then return; fi
  if $counting; then
    profile_flags=$counting_flags profile_libraries=$work/libgcov.a
    # the kernel has a function of that name, too
    objcopy --redefine-sym mangle_path=gcov_mangle_path "$(gcc -print-file-name=libgcov.a)" "$profile_libraries"
    return
  fi
  if [[ -z $(used_profile) ]]; then
    say "the profile is gcc $profile_compiler's, this is gcc $(gcc -dumpfullversion): going on without, to the same results in more time"
    return
  fi
  run_job tar -xJf "$profile" -C "$work/source" || die "${profile##*/} can't be unpacked"
  profile_flags=$counted_flags
}

# wanted_config: every setting, a line each. Linux itself lets nobody choose um's timer frequency.
wanted_config() {
  if $stock; then grep -v '^CONFIG_HZ=' "$here/config"; else cat -- "$here/config"; fi
  [[ -z $more ]] || cat -- "$more"
}

# assemble DIRECTORY: the folder as it will stand in the cache.
assemble() {
  local ready=$1
  mkdir -p "$ready"
  strip -o "$ready/linux" "$work/source/linux" 2>>"$log" || die_with_log "the kernel can't be stripped"
  run_job make_programs "$ready/root" 2>>"$log" || die_with_log "the programs inside can't be put together"
  cp -- "$work/source/.config" "$ready/config"
  chmod 755 "$ready/linux"
  cat >"$ready/kernel.json" <<END
{
  "version": "$(cat "$work/source/include/config/kernel.release")",
  "key": "$key",
  "results_key": "$(results_key)",
  "source": "$source_name",
  "source_version": "$source_version",
  "source_sha256": "$source_sha256",
  "pinned": $pinned,
  "config_sha256": "$(wanted_config | hash_of)",
  "patches_sha256": "$(hash_of_patches "${patches[@]}")",
  "sparing_sha256": "$(hash_of_patches "${sparing[@]}")",
  "options_sha256": "$(hash_of_patches "${options[@]}")",
  "profile_sha256": "$(used_profile)",
  "sampler_sha256": "$(hash_of_file "$here/ss-sampler.c")",
  "packages_sha256": "$(packages | hash_of)",
  "programs": {$(programs_json)
  },
  "compiler": "$(gcc --version | head -n 1 | tr -d '"')",
  "linux_sha256": "$(hash_of_file "$ready/linux")",
  "origin": "built"
}
END
  write_sums "$ready"
}

# --- getting it ready ----------------------------------------------------------------------------

get_ready() {
  local ready missing
  root=$(cache_root)
  key=$(cache_key)
  if is_ready "$root/$key"; then
    printf '%s\n' "$root/$key"
    return
  fi
  if [[ -n $tarball ]] || ! comes_with_checkout; then
    [[ -z $no_build ]] || exit 3
    [[ -n $tarball$more ]] || $stock || say_why_built
    require_tools
  fi
  is_x86_64 || die "the virtual kernel runs on x86-64 Linux only, this is $(uname -m)"
  take_lock
  if is_ready "$root/$key"; then
    printf '%s\n' "$root/$key"
    return
  fi
  allows_programs "$root" ||
    die "programs in $root can't be executed, is it mounted noexec? Set MEASURETWICE_CACHE to another folder"
  missing=$(lacks "$root/$key")
  [[ ! -e $root/$key || -z $missing ]] || say "$root/$key is no whole kernel, $missing: it is made anew"
  ready=$root/.ready-$key
  begin_build

  if [[ -z $tarball ]] && comes_with_checkout; then
    take_shipped "$ready" kernel.json
  else
    require_disk "$NEEDED_MIB"
    say "building the virtual kernel, once: $EXPECTED_TIME, $NEEDED_MIB MB of disk meanwhile, 60 MB afterwards"
    # What can be refused without the network comes before it.
    if [[ -n $tarball ]]; then
      take_tarball
    else
      find_archives
      fetch_programs
      fetch_debian_source
    fi
    say "unpacking and patching $source_name $source_version"
    unpack_source
    apply_patches "${patches[@]}" "${sparing[@]}" "${options[@]}"
    if [[ -n $tarball ]]; then
      find_archives
      fetch_programs
    fi
    wanted_config >"$work/config"
    configure "$work/config"
    take_profile
    compile linux
    run_job build_iproute2 || die_with_log "the build of iproute2 failed"
    assemble "$ready"
  fi
  keep_build "$ready"
  comes_with_checkout && [[ -z $tarball ]] ||
    say "the virtual kernel $(json_field "$root/$key/kernel.json" version) is ready after $SECONDS s"
  printf '%s\n' "$root/$key"
}

take_tarball() {
  [[ -r $tarball ]] || die "can't read $tarball"
  source_file=$tarball
  source_sha256=$(hash_of_file "$tarball")
  [[ $source_sha256 == "${sha256,,}" ]] ||
    die "wrong checksum: $tarball is $source_sha256, expected ${sha256,,}; nothing was unpacked"
  source_name=${tarball##*/} source_version=unknown pinned=false
  if [[ $source_sha256 == "$PIN_TARBALL_SHA256" ]]; then
    source_name=$PIN_PACKAGE source_version=$PIN_VERSION pinned=true
  else
    say "this is not the source that recorded results come from: results will be near them, not identical"
  fi
}

# --- facts for `lab doctor`, and a first boot ----------------------------------------------------

json_list() {
  local separator='' item
  printf '['
  for item in "$@"; do
    printf '%s"%s"' "$separator" "$(json_text "$item")"
    separator=', '
  done
  printf ']'
}

# Does a program that lies in this folder run? UML maps its memory, a file there, as code.
allows_programs() {
  local probe result=1
  probe=$(mktemp "$1/.measuretwice-probe.XXXXXX" 2>/dev/null) || return 1
  printf '#!/bin/sh\nexit 0\n' >"$probe"
  chmod +x "$probe" && "$probe" 2>/dev/null && result=0
  rm -f -- "$probe"
  return "$result"
}

# Where a kernel's memory can go, best first: memory rather than disk.
memory_folders() {
  printf '%s\n' ${TMPDIR:+"$TMPDIR"} /dev/shm /tmp /var/tmp "$(cache_root)" | awk '!seen[$0]++'
}

memory_folder() { # MIB
  local folder
  while IFS= read -r folder; do
    if [[ -d $folder && -w $folder ]] && (($(free_mib "$folder") >= $1)) && allows_programs "$folder"; then
      printf '%s\n' "$folder"
      return
    fi
  done < <(memory_folders)
  return 1
}

print_facts() {
  local root key folder separator='' parent exec_ok
  local -a missing
  root=$(cache_root) key=$(cache_key)
  mapfile -t missing < <(lacking)
  parent=$root
  while [[ ! -d $parent ]]; do parent=$(dirname -- "$parent"); done
  printf '{\n  "cpu_ok": %s,\n' "$(is_x86_64 && echo true || echo false)"
  printf '  "cores": %s,\n' "$(nproc)"
  printf '  "amx": %s,\n' "$(grep -qw amx_tile /proc/cpuinfo 2>/dev/null && echo true || echo false)"
  printf '  "seccomp": %s,\n' "$(grep -qw trap /proc/sys/kernel/seccomp/actions_avail 2>/dev/null && echo true || echo false)"
  # Without it the kernel's addresses, and with them the size of its memory, differ from run to run.
  printf '  "fixed_addresses": %s,\n' "$(setarch -R true 2>/dev/null && echo true || echo false)"
  printf '  "comes_with_checkout": %s,\n' "$(comes_with_checkout && echo true || echo false)"
  printf '  "missing_packages": %s,\n' "$(json_list "${missing[@]}")"
  printf '  "cache": "%s",\n  "cache_writable": %s,\n' "$(json_text "$root")" "$([[ -w $parent ]] && echo true || echo false)"
  printf '  "disk_free_mib": %s,\n  "disk_needed_mib": %s,\n' "$(free_mib "$parent")" "$NEEDED_MIB"
  printf '  "memory_folders": ['
  while IFS= read -r folder; do
    [[ -d $folder ]] || continue
    exec_ok=false
    if allows_programs "$folder"; then exec_ok=true; fi
    printf '%s\n    {"path": "%s", "free_mib": %s, "exec": %s}' "$separator" "$(json_text "$folder")" "$(free_mib "$folder")" "$exec_ok"
    separator=,
  done < <(memory_folders)
  printf '\n  ],\n  "memory_folder": "%s",\n' "$(json_text "$(memory_folder 1024 || true)")"
  printf '  "key": "%s",\n  "kernel_ready": %s,\n' "$key" "$(is_ready "$root/$key" && echo true || echo false)"
  if is_ready "$root/$key"; then
    printf '  "kernel": "%s",\n' "$(json_text "$root/$key")"
    printf '  "kernel_version": "%s",\n' "$(json_field "$root/$key/kernel.json" version)"
  fi
  printf '  "pinned_source": "%s %s"\n}\n' "$PIN_PACKAGE" "$PIN_VERSION"
}

smoke_test() {
  local folder memory output run
  folder=$(cache_root)/$(cache_key)
  is_ready "$folder" || die "the kernel is not built yet: run $me"
  memory=$(memory_folder 128) ||
    die "no folder for the kernel's memory: TMPDIR, /dev/shm and /tmp must have 128 MB free and allow programs"
  run=$(mktemp -d)
  # shellcheck disable=SC2016 # it is asked inside
  printf 'echo "measuretwice-smoke-ok $(uname -r)"\n' >"$run/experiment.sh"
  # The person's environment stays outside: UML computes its addresses from it, and fails over long variables.
  output=$(cd / && timeout -k 2 20 env -i PATH="$PATH" HOME=/ TMPDIR="$memory" "$folder/linux" mem=96M seccomp=on time-travel=inf-cpu \
    time-travel-start=1700000000000000000 rootfstype=hostfs "rootflags=\"$folder/root\"" ro init=/sbin/guest-init \
    "MT_FOLDER=\"$run\"" "MT_ROOT=\"$run\"" con=null con0=null,fd:1 quiet panic=-1 2>&1 </dev/null) || true
  output+=$'\n'$(cat -- "$run/experiment.log" 2>/dev/null || true)
  rm -rf -- "$run"
  [[ $output == *"measuretwice-smoke-ok"* ]] ||
    die "the kernel doesn't boot here: $(grep -v '^ *$' <<<"$output" | tail -n 1 | cut -c1-200)"
  say "the virtual kernel boots: $(sed -n 's/.*measuretwice-smoke-ok //p' <<<"$output" | tr -d '\r')"
}

# --- options -------------------------------------------------------------------------------------

action=get_ready
counting=false
stock=false
more=
tarball=
sha256=
no_build=
while (($#)); do
  case $1 in
    --help | -h)
      usage
      exit 0
      ;;
    --key) action=cache_key ;;
    --path) action=path ;;
    --needs) action=print_needs ;;
    --no-build) no_build=yes ;;
    --check) action=print_facts ;;
    --smoke) action=smoke_test ;;
    --counting) counting=true ;;
    --stock)
      stock=true local_version=stock kernel_flags='' patches=() sparing=() options=()
      ;;
    --more)
      [[ -r ${2:-} ]] || die_usage "--more needs a file of settings"
      more=$(realpath -- "$2") EXPECTED_FILES=$EXPECTED_FILES_OF_MORE
      shift
      ;;
    --tarball | --sha256)
      (($# >= 2)) || die_usage "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift
      ;;
    --sources | --keep-sources)
      (($# >= 2)) || die_usage "$1 needs a folder"
      take_folder "$1" "$2"
      shift
      ;;
    --show-apt-sources)
      (($# == 3)) || die_usage "$1 needs a directory and a codename"
      apt_entries "$2" "$3" | tr '\037' ' '
      exit 0
      ;;
    *) die_usage "unknown option $1" ;;
  esac
  shift
done
if [[ -n $tarball ]]; then
  [[ -n $sha256 ]] || die_usage "--tarball needs --sha256: the checksum that you trust"
fi

case $action in
  path)
    is_ready "$(cache_root)/$(cache_key)" || exit 3
    printf '%s/%s\n' "$(cache_root)" "$(cache_key)"
    ;;
  *) "$action" ;;
esac
