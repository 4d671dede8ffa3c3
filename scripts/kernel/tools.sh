#!/usr/bin/env bash
# What both builders need, this kernel's and the browser's machine's: talking, long jobs, the cache, the machine that
# comes with the checkout. Read by build.sh, which sets `me`, its name, `kind`, its folder in the cache, and `shipped_as`,
# its archive's name in machines/.
# shellcheck disable=SC2154 # me, kind, shipped_as, key, root, log, work are those scripts'

# --- talking -------------------------------------------------------------------------------------

say() { printf '%s\n' "$*" >&2; }

die() {
  clear_progress
  printf '%s: %s\n' "$me" "$*" >&2
  exit 1
}

die_usage() {
  printf '%s: %s (--help shows the options)\n' "$me" "$*" >&2
  exit 2
}

# A line of progress: in place on a terminal, else one every ten seconds.
progress_shown=false
progress_next=0
show_progress() {
  if [[ -t 2 ]]; then
    printf '\r\033[K%s' "$1" >&2
    progress_shown=true
  elif ((SECONDS >= progress_next)); then
    say "$1"
    progress_next=$((SECONDS + 10))
  fi
}

clear_progress() {
  if $progress_shown; then
    printf '\r\033[K' >&2
    progress_shown=false
  fi
}

# --- what takes long -----------------------------------------------------------------------------

# start_job FUNCTION...: in the background, in a process group of its own. The shell stays free to
# take a signal, and an interrupted build ends with all its compilers.
job=
start_job() {
  set -m
  "$@" &
  job=$!
  set +m
}

finish_job() {
  local status=0
  wait "$job" || status=$?
  job=
  return "$status"
}

run_job() {
  start_job "$@"
  finish_job
}

is_x86_64() { [[ $(uname -s) == Linux && $(uname -m) == x86_64 ]]; }

# --- the cache ------------------------------------------------------------------------------------

hash_of() { sha256sum | cut -d' ' -f1; }
hash_of_file() { hash_of <"$1"; }
hash_of_patches() { # PATCH...
  local patch
  for patch in "$@"; do
    printf '%s\n' "${patch##*/}"
    cat -- "$patch"
  done | hash_of
}

cache_root() {
  local root=${MEASURETWICE_CACHE:-}
  if [[ -z $root ]]; then
    root=${XDG_CACHE_HOME:-${HOME:-}/.cache}/measuretwice
  fi
  [[ $root == /* ]] || root=$PWD/$root
  printf '%s/%s\n' "$root" "$kind"
}

# json_field FILE NAME: the first field of this name in a JSON file that has one a line, as builders write them.
json_field() {
  sed -nE '/^ *"'"$2"'": *"?([^",]*)"?,?$/{s//\1/p;q}' "$1"
}

json_text() {
  local text=${1//\\/\\\\}
  printf '%s' "${text//\"/\\\"}" | tr -d '\000-\037'
}

require_disk() { # MIB
  local free
  free=$(free_mib "$work")
  ((${free:-0} >= $1)) ||
    die "the build needs $1 MB of disk in ${work%/*}, ${free:-0} MB are free: make room, or set MEASURETWICE_CACHE to a folder elsewhere"
}

free_mib() { stat -f -c '%a %S' -- "$1" 2>/dev/null | awk '{ printf "%d\n", $1 * $2 / 1048576 }'; }

die_with_log() {
  local kept=$root/last-failure.log
  cp -- "$log" "$kept" 2>/dev/null || kept='(which could not be kept)'
  die "$1: see $kept"
}

# --- the machine that comes with the checkout -----------------------------------------------------

machines=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/machines
unpacker=${machines%/*}/scripts/machines/shipped.py

# MEASURETWICE_KERNEL=build: from source, also where the checkout's own would do.
on_purpose=${MEASURETWICE_KERNEL:-}
[[ -z $on_purpose || $on_purpose == build ]] || {
  say "$me: MEASURETWICE_KERNEL is 'build', or not set; it is '$on_purpose'"
  exit 2
}

# comes_with_checkout: is what stands in machines/ what this checkout's scripts would build? A manifest that says
# nothing is no reason to build.
comes_with_checkout() {
  local shipped_key=''
  [[ -z $on_purpose && -d $machines ]] || return 1
  [[ ! -f $machines/$shipped_as.json ]] || shipped_key=$(head -c 1000 -- "$machines/$shipped_as.json" 2>/dev/null | sed -nE '/^ *"key": "([^",]*)",$/{s//\1/p;q}')
  [[ $shipped_key ]] ||
    die "machines/$shipped_as.json is missing or damaged: git checkout machines, or download the kit anew; or build it: MEASURETWICE_KERNEL=build"
  [[ $shipped_key == "$key" ]]
}

# say_why_built: the checkout brings a machine, and it isn't the one that its scripts make.
say_why_built() {
  [[ $on_purpose || ! -d $machines ]] ||
    say "machines/$shipped_as.tar.xz was made from other patches or settings than those here (git diff shows yours), so this one is built"
}

# print_needs: what a build lacks, where one is due.
print_needs() {
  local missing
  root=$(cache_root) key=$(cache_key)
  missing=$(lacking)
  [[ -n $missing ]] || return 0
  say_why_built
  printf '%s\n' "$missing"
}

# take_shipped FOLDER [FACTS]: the machine's files, their checksum compared; FACTS, a file among them, says where from.
take_shipped() {
  local ready=$1 python found='' needed
  for python in ${MEASURETWICE_PYTHON:+"$MEASURETWICE_PYTHON"} python3 python3.{14,13,12,11}; do
    "$python" -Ic 'import lzma, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && found=$python && break
  done
  [[ -n $found ]] || die "no Python 3.11 with its lzma module is here to unpack $shipped_as.tar.xz: install python3"
  needed=$(($(json_field "$machines/$shipped_as.json" unpacked_bytes) / 1000000))
  (($(free_mib "$root") > needed)) ||
    die "no room in $root: it takes $needed MB, $(free_mib "$root") are free. Make room, or set MEASURETWICE_CACHE to a folder elsewhere"
  say "unpacking machines/$shipped_as.tar.xz, which comes with the checkout: $needed MB"
  run_job "$found" -I "$unpacker" unpack "$shipped_as" "$ready" 2>>"$log" || die "$(tail -n 1 -- "$log" | sed 's/^[a-z.]*: //')"
  if (($# > 1)); then sed -i 's/"origin": "built"/"origin": "shipped"/' "$ready/$2"; fi
}

work=
clean_up() {
  local status=$? group
  trap - EXIT INT TERM HUP
  for group in $(jobs -p); do
    kill -TERM -- "-$group" 2>/dev/null || true
  done
  wait 2>/dev/null || true
  clear_progress
  [[ -z $work ]] || rm -rf -- "$work" "$root/.ready-$key"
  exit "$status"
}

# The kernel's makefiles refuse a path with a space or a colon: then work elsewhere. The name is
# fixed, and the lock is held, so that what an interrupted build left is found and removed.
choose_work_folder() {
  local folder
  work=
  folder=$root/.build-$key
  if [[ $folder == *[[:space:]:]* ]]; then
    folder=/var/tmp/measuretwice-$(id -u)-$(printf '%s' "$root" | hash_of | cut -c1-8)
    if [[ -e $folder && (! -O $folder || -L $folder) ]]; then
      die "$folder belongs to someone else: set MEASURETWICE_CACHE to a folder without spaces in its path"
    fi
  fi
  rm -rf -- "$root"/.build-* "$root"/.ready-* "$root"/.damaged-* "$folder"
  mkdir -m 700 -- "$folder" 2>/dev/null || die "can't write to ${folder%/*}"
  work=$folder
}

# begin_build: a folder to work in, and a log; whatever ends the build removes the folder.
begin_build() {
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  choose_work_folder
  log=$work/log
  : >"$log"
  SECONDS=0
}

# write_sums FOLDER: the checksum of every file in it but its facts, which are changed afterwards; by these a damaged
# one is told later (backends/machines.py).
write_sums() {
  (cd -- "$1" && find . -type f ! -name kernel.json ! -name machine.json ! -name SHA256SUMS -printf '%P\0' |
    LC_ALL=C sort -z | xargs -0 sha256sum --) >"$work/sums" && mv -- "$work/sums" "$1/SHA256SUMS"
}

# keep_build READY: what was built, in its place in the cache.
keep_build() {
  rm -rf -- "${root:?}/$key"
  mv -T -- "$1" "$root/$key"
  rm -f -- "$root/last-failure.log"
}

take_lock() {
  if ! mkdir -p -- "$root" 2>/dev/null || ! : 2>/dev/null >>"$root/lock"; then
    die "can't write to the cache $root: set MEASURETWICE_CACHE to a folder of yours"
  fi
  exec {lock}>>"$root/lock"
  # Without flock (util-linux) one at a time is up to whoever starts them.
  command -v flock >/dev/null || return 0
  if ! flock -n "$lock"; then
    say "another build of the kernel is under way: waiting for it"
    flock "$lock"
  fi
}
