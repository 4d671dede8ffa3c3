#!/usr/bin/env bash
# Gets the virtual kernel ready and prints the folder it is in: found in the cache, taken from a
# prebuilt archive, or built from source. Everything else that it has to say goes to stderr.
set -euo pipefail

# --- the source that every result is tied to -----------------------------------------------------
PIN_PACKAGE=linux-source-7.2
PIN_VERSION='7.2.12-1~bpo13+1'
PIN_SHA256=73ca6c22599ba411ab3179642d33501ca2c90174e13c3c8d86e996ea1cbf2a8f
# The tar file inside the package, for people who have that.
PIN_TARBALL_SHA256=dd8cf7080e709d050ce2a14ace00d461a1ebb5d877f69fe70232de1818984fac
PIN_PLACE=pool/main/l/linux/linux-source-7.2_$PIN_VERSION'_all.deb'
# Where to look for the nearest other version once the pinned one has left the archive.
NEAREST_SUITES=(trixie-backports testing unstable)

# Part of the cache key: raise it when this script or programs.sh makes something else of the same inputs.
RECIPE=2

# What a build takes, measured.
EXPECTED_FILES=683
EXPECTED_DOWNLOAD_BYTES=164744800
NEEDED_MIB=700
# of another version than the pinned one, the whole tree is unpacked
NEEDED_UNPINNED_MIB=2300
EXPECTED_TIME='about four minutes on two cores'

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
me=${0##*/}
# shellcheck source=scripts/kernel/programs.sh
. "$here/programs.sh"

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

usage() {
  cat <<END
Usage: $me [option]
Gets the virtual kernel ready and prints its folder: linux, config, kernel.json, and in root/
the programs that run inside.

  (no option)         find it in the cache, or build it from Debian's $PIN_PACKAGE $PIN_VERSION
                      and the programs in packages.txt
  --prebuilt WHERE    unpack an archive made by pack.sh (URL or file) instead of building;
                      the same as MEASURETWICE_KERNEL=WHERE. Its SHA-256 comes from
                      MEASURETWICE_KERNEL_SHA256, or from WHERE.sha256
  --tarball FILE      build from this .tar.xz of the kernel's source (Debian's or Linux's own)
  --sha256 HEX        the checksum that the tarball or the archive must have
  --path              print the folder if it is ready, else exit with 3
  --key               print the cache key
  --check             print what this machine has for a build and a run, as JSON
  --smoke             boot the ready kernel once, for a second
  --show-apt-sources DIRECTORY CODENAME
                      print which entries of an apt configuration would be used, best first

The cache is \${MEASURETWICE_CACHE:-\${XDG_CACHE_HOME:-~/.cache}/measuretwice}/kernel.
Exit codes: 0 ready, 1 it can't be got ready (one line says why), 2 wrong usage, 3 not ready (--path).
END
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

# --- what is wanted, and where it goes -----------------------------------------------------------

patches=("$here"/patches/*.patch)

hash_of() { sha256sum | cut -d' ' -f1; }
hash_of_file() { hash_of <"$1"; }
hash_of_patches() {
  local patch
  for patch in "${patches[@]}"; do
    printf '%s\n' "${patch##*/}"
    cat -- "$patch"
  done | hash_of
}

cache_key() {
  {
    printf '%s\n' "$RECIPE" "$PIN_PACKAGE" "$PIN_VERSION" "$PIN_SHA256" \
      "$(hash_of_file "$here/config")" "$(hash_of_patches)" \
      "$(hash_of_file "$here/ss-sampler.c")" "$(hash_of_file "$here/guest-init.c")" \
      "$(packages | hash_of)" \
      "$(hash_of_file "$here/netlink-errors.h")"
  } | hash_of | cut -c1-20
}

cache_root() {
  local root=${MEASURETWICE_CACHE:-}
  if [[ -z $root ]]; then
    root=${XDG_CACHE_HOME:-${HOME:-}/.cache}/measuretwice
  fi
  [[ $root == /* ]] || root=$PWD/$root
  printf '%s/kernel\n' "$root"
}

# A folder counts when kernel.json, which is written last, is in it.
is_ready() {
  [[ -f $1/kernel.json && -x $1/linux && -f $1/config && -x $1/root/sbin/guest-init && -x $1/root/bin/bash ]]
}

# json_field FILE NAME: a field of kernel.json, which this script writes one a line.
json_field() {
  sed -nE 's/^ *"'"$2"'": *"?([^",]*)"?,?$/\1/p' "$1"
}

# --- requirements --------------------------------------------------------------------------------

is_x86_64() { [[ $(uname -s) == Linux && $(uname -m) == x86_64 ]]; }

# The Debian packages of the tools that a build lacks, one a line.
missing_packages() {
  local tool_package
  for tool_package in gcc:gcc make:make flex:flex bison:bison bc:bc ld:binutils patch:patch xz:xz-utils ar:binutils \
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

require_tools() {
  local -a missing
  is_x86_64 || die "the virtual kernel runs on x86-64 Linux only, this is $(uname -s) on $(uname -m): use --on host, or nodes over ssh"
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]})); then
    die "to build the kernel these Debian packages are missing: sudo apt install ${missing[*]}  (or set MEASURETWICE_KERNEL to a prebuilt archive)"
  fi
}

require_disk() { # MIB
  local free
  free=$(free_mib "$work")
  ((${free:-0} >= $1)) ||
    die "the build needs $1 MB of disk in ${work%/*}, ${free:-0} MB are free: make room, or set MEASURETWICE_CACHE to a folder elsewhere"
}

free_mib() { df -Pm -- "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }

# --- apt's own sources ---------------------------------------------------------------------------

# apt_entries DIRECTORY CODENAME: the entries of an apt configuration directory that are, by their
# suites, the Debian archive's, best first. One a line: URI, tab, Signed-By with \037 for newlines.
apt_entries() {
  local -a lists=() stanzas=()
  local file
  for file in "$1"/sources.list "$1"/sources.list.d/*.list; do
    [[ -r $file ]] && lists+=("$file")
  done
  for file in "$1"/sources.list.d/*.sources; do
    [[ -r $file ]] && stanzas+=("$file")
  done
  {
    if ((${#lists[@]})); then one_line_entries "${lists[@]}"; fi
    if ((${#stanzas[@]})); then deb822_entries "${stanzas[@]}"; fi
  } | rank_entries "$2"
}

# Both formats become lines of: URI, tab, suites, tab, components, tab, Signed-By.
one_line_entries() {
  awk '
    $1 == "deb" {
      line = $0
      sub(/#.*/, "", line)
      sub(/^[ \t]*deb[ \t]+/, "", line)
      signed = ""
      if (line ~ /^\[/) {
        options = substr(line, 2, index(line, "]") - 2)
        line = substr(line, index(line, "]") + 1)
        count = split(options, option, /[ \t]+/)
        for (i = 1; i <= count; i++)
          if (tolower(option[i]) ~ /^signed-by=/) {
            signed = substr(option[i], 11)
            gsub(/,/, " ", signed)
          }
      }
      count = split(line, field, /[ \t]+/)
      first = field[1] == "" ? 2 : 1
      components = ""
      for (i = first + 2; i <= count; i++) components = components " " field[i]
      if (count >= first + 1)
        printf "%s\t%s\t%s\t%s\n", field[first], field[first + 1], components, signed
    }
  ' "$@"
}

deb822_entries() {
  awk '
    function flush_stanza(   count, uri, i) {
      if ((" " value["types"] " ") ~ / deb / && tolower(value["enabled"]) != "no") {
        count = split(value["uris"], uri, /[ \t\037]+/)
        for (i = 1; i <= count; i++)
          if (uri[i] != "")
            printf "%s\t%s\t%s\t%s\n", uri[i], value["suites"], value["components"], value["signed-by"]
      }
      split("", value)
      name = ""
    }
    FNR == 1 { flush_stanza() }
    /^#/ { next }
    /^[ \t]*$/ { flush_stanza(); next }
    /^[ \t]/ {
      # a field goes on; only the lines of a key inside Signed-By matter as lines
      if (name == "signed-by") value[name] = value[name] "\037" $0
      else { sub(/^[ \t]+/, " "); value[name] = value[name] $0 }
      next
    }
    {
      name = tolower(substr($0, 1, index($0, ":") - 1))
      rest = substr($0, index($0, ":") + 1)
      sub(/^[ \t]+/, "", rest)
      sub(/[ \t\r]+$/, "", rest)
      value[name] = rest
    }
    END { flush_stanza() }
  ' "$@"
}

# Debian names its suites; mirrors have any name. An archive that carries both this machine's
# release and its updates comes first; other makers call their suites by the release, too.
rank_entries() {
  awk -F '\t' -v codename="$1" '
    BEGIN {
      count = split("oldoldstable oldstable stable testing unstable sid bullseye bookworm trixie forky duke", known, " ")
      for (i = 1; i <= count; i++) is_debian[known[i]] = 1
      if (codename != "") is_debian[codename] = 1
    }
    $1 !~ /^cdrom:/ && (" " $3 " ") ~ /[ \t]main[ \t]/ {
      count = split($2, suite, /[ \t]+/)
      mine = 0
      for (i = 1; i <= count; i++) {
        base = suite[i]
        sub(/-(updates|backports|backports-sloppy|proposed-updates)$/, "", base)
        if (!(base in is_debian)) continue
        mine = 1
        if (base == codename) { if (suite[i] == base) release[$1] = 1; else updates[$1] = 1 }
      }
      if (!mine) next
      entry = $1 "\t" $4
      if (!(entry in seen)) { seen[entry] = 1; entries[++total] = entry; uris[total] = $1 }
    }
    END {
      for (rank = 0; rank < 3; rank++)
        for (i = 1; i <= total; i++)
          if (2 - release[uris[i]] - updates[uris[i]] == rank) print entries[i]
    }
  '
}

# A private apt: own lists and cache, this machine's proxies, certificates and keys. Its settings
# come after the machine's, so that none of those runs hooks or waives a signature.
write_apt_conf() {
  local root=$1
  mkdir -p "$root/state/lists/partial" "$root/cache/archives/partial" "$root/etc"
  cat >"$root/apt.conf" <<END
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
Dir::State "$root/state";
Dir::State::status "/dev/null";
Dir::Cache "$root/cache";
Dir::Etc::sourcelist "$root/etc/debian.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "$(id -un)";
APT::Get::AllowUnauthenticated "false";
APT::Update::Error-Mode "any";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
END
}

write_apt_source() { # ROOT URI SIGNED_BY SUITE...
  local root=$1 uri=$2 signed=$3
  shift 3
  {
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nTargets: Packages\n' "$uri" "$*"
    if [[ -n $signed ]]; then
      printf 'Signed-By: %s\n' "${signed//$'\037'/$'\n'}"
    fi
  } >"$root/etc/debian.sources"
}

download_deb() { (cd "$work/deb" && private_apt_get download "$1"); }
private_apt_get() { apt-get -q -c="$apt_root/apt.conf" "$@" >>"$log" 2>&1 </dev/null; }
private_apt_cache() { apt-cache -c="$apt_root/apt.conf" "$@" 2>>"$log"; }

# The linux-source-7.* nearest to the pinned one, as "PACKAGE VERSION": the same version of Linux in
# another suite if there is one, else the next after it, else the last before it.
nearest_source() {
  local package
  {
    printf '%s %s pinned\n' "${PIN_VERSION%%-*}" "$PIN_VERSION"
    private_apt_cache pkgnames linux-source-7. | grep -E '^linux-source-7\.[0-9]+$' | while read -r package; do
      private_apt_cache madison "$package" |
        awk -F ' *[|] *' -v package="$package" '{ linux = $2; sub(/-.*/, "", linux); print linux, $2, package }'
    done
  } | sort -u -k 1,1V -k 2,2V -k 3 | awk -v linux="${PIN_VERSION%%-*}" '
    $3 == "pinned" { passed = 1; next }
    $1 == linux { same = $3 " " $2; next }
    passed { if (next_one == "") next_one = $3 " " $2; next }
    { last = $3 " " $2 }
    END {
      if (same != "") print same
      else if (next_one != "") print next_one
      else if (last != "") print last
    }
  '
}

# The last thing apt complained about, as one line.
apt_complaint() {
  local complaint
  complaint=$(grep -E '^(E|W|Err)' "$log" | grep -v 'Some index files failed' | tail -n 1 | cut -c1-200) || true
  printf '%s' "${complaint:-apt says nothing}"
}

# Sets archives, where Debian's files can be had from: entries as apt_entries prints them; and makes
# the private apt that asks them.
find_archives() {
  local etc codename mirror=${MEASURETWICE_MIRROR:-}
  archives=()
  [[ -z $mirror ]] || archives+=("$mirror"$'\t')
  if command -v apt-get >/dev/null; then
    etc=$(apt-config shell etc Dir::Etc/f 2>/dev/null) && eval "$etc"
    etc=${etc:-/etc/apt}
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release 2>/dev/null && printf '%s' "${VERSION_CODENAME:-}")
    mapfile -t -O "${#archives[@]}" archives < <(apt_entries "${etc%/}" "$codename")
  fi
  ((${#archives[@]})) ||
    die "none of this machine's apt sources is the Debian archive: set MEASURETWICE_MIRROR to a mirror of it, or MEASURETWICE_KERNEL to a prebuilt archive"
  apt_root=$work/apt
  write_apt_conf "$apt_root"
}

# fetch_pinned FOLDER WHAT BYTES (PLACE SHA256)...: files by their places in a mirror. They are told by
# their checksums, so any mirror will do, and Debian's lists needn't be fetched. Fails where one isn't to be had.
fetch_pinned() {
  local folder=$1 what=$2 bytes=$3 entry file
  local -a pinned_files=("${@:4}") lacking
  local -i i
  mkdir -p "$folder"
  for entry in "${archives[@]}"; do
    lacking=()
    for ((i = 0; i < ${#pinned_files[@]}; i += 2)); do
      file=$folder/${pinned_files[i]##*/}
      [[ -f $file ]] || lacking+=("${entry%%$'\t'*}" "${pinned_files[i]}" "$file" "${pinned_files[i + 1]}")
    done
    ((${#lacking[@]})) || break
    start_job download_files "${lacking[@]}"
    while kill -0 "$job" 2>/dev/null; do
      show_progress "downloading $what: $(($(du -sk "$folder" | cut -f1) / 1000)) of $(((bytes + 999999) / 1000000)) MB"
      sleep 0.3
    done
    clear_progress
    finish_job || true
  done
  for ((i = 0; i < ${#pinned_files[@]}; i += 2)); do
    file=$folder/${pinned_files[i]##*/}
    [[ -f $file ]] || return 1
    [[ $(hash_of_file "$file") == "${pinned_files[i + 1]}" ]] ||
      die "wrong checksum: ${file##*/} is not what results come from; nothing was unpacked"
  done
}

# download_files (MIRROR PLACE FILE SHA256)...: with apt's own means where there are any, so that its
# proxies and certificates count.
download_files() {
  local helper=/usr/lib/apt/apt-helper files=() failed=0
  if [[ -x $helper ]]; then
    while (($#)); do
      files+=("${1%/}/$2" "$3" "SHA256:$4")
      shift 4
    done
    "$helper" -c="$apt_root/apt.conf" download-file "${files[@]}" >>"$log" 2>&1 </dev/null
    return
  fi
  while (($#)); do
    if fetch "${1%/}/$2" "$3.part"; then mv -- "$3.part" "$3"; else failed=1; fi
    shift 4
  done
  return "$failed"
}

# Sets source_file, source_name, source_version, source_sha256, pinned.
fetch_debian_source() {
  source_name=$PIN_PACKAGE source_version=$PIN_VERSION source_sha256=$PIN_SHA256 pinned=true
  source_file=$work/deb/${PIN_PLACE##*/}
  say "fetching $PIN_PACKAGE $PIN_VERSION from the Debian archive"
  fetch_pinned "$work/deb" "the kernel's source" "$EXPECTED_DOWNLOAD_BYTES" "$PIN_PLACE" "$PIN_SHA256" || fetch_nearest_source
}

fetch_nearest_source() {
  local entry uri signed found=''
  local official=/usr/share/keyrings/debian-archive-keyring.gpg
  local -a all=("${archives[@]}")
  command -v apt-get >/dev/null || die "no mirror has $PIN_PACKAGE $PIN_VERSION any more: set MEASURETWICE_KERNEL to a prebuilt archive"
  # Signed-By may name the keys of one release only; Debian's own keyring knows them all.
  if [[ -r $official ]]; then
    for entry in "${archives[@]}"; do all+=("${entry%%$'\t'*}"$'\t'"$official"); done
  fi
  for entry in "${all[@]}"; do
    uri=${entry%%$'\t'*} signed=${entry#*$'\t'}
    write_apt_source "$apt_root" "$uri" "$signed" "${NEAREST_SUITES[@]}"
    # One suite may be missing; the others' lists are there all the same.
    run_job private_apt_get update || true
    read -r source_name source_version < <(nearest_source) && found=yes && break
  done
  [[ -n $found ]] || die "can't get linux-source-7.* through this machine's apt sources ($(apt_complaint)): set MEASURETWICE_KERNEL to a prebuilt archive"
  pinned=false
  say "$PIN_PACKAGE $PIN_VERSION has left the archive: taking $source_name $source_version. Results will be near the recorded ones, not identical."
  rm -rf -- "$work/deb"
  mkdir -p "$work/deb"
  start_job download_deb "$source_name=$source_version"
  while kill -0 "$job" 2>/dev/null; do
    show_progress "downloading the source: $(($(du -sk "$work/deb" | cut -f1) / 1000)) of $((EXPECTED_DOWNLOAD_BYTES / 1000000)) MB"
    sleep 0.5
  done
  clear_progress
  finish_job || die "the download of $source_name $source_version failed: $(apt_complaint)"
  source_file=$(find "$work/deb" -name '*.deb' -print -quit)
  [[ -n $source_file ]] || die "the download of $source_name $source_version brought no file: $(apt_complaint)"
  source_sha256=$(hash_of_file "$source_file")
}

# --- building ------------------------------------------------------------------------------------

# What the build of the pinned version never reads: half of the tree, and of the time to unpack it.
unpack_options() {
  local folder
  for folder in gpu net/ethernet net/wireless media scsi clk pinctrl usb accel infiniband staging iio \
    video crypto platform md hwmon phy; do
    printf '%s\n' "--exclude=*/drivers/$folder/*.[ch]"
  done
  # Of other processors, only what describes their options is read.
  printf '%s\n' '--exclude=*/arch/[!ux]*/*.[chS]' '--exclude=*/arch/[!ux]*/*.dts*' \
    '--exclude=*/Documentation/*/*' '--exclude=*/tools/[!i]*/*' '--exclude=*/sound/*.[ch]'
}

# package_files FILE: what a Debian package installs, as a tar file. A package is an ar archive.
package_files() { ar p "$1" data.tar.xz | xz -dc; }

write_tarball() {
  case $source_file in
    *.deb) package_files "$source_file" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' ;;
    *) cat -- "$source_file" ;;
  esac
}

unpack_tarball() {
  local -a options=()
  # Another version may read other files: take all of it.
  if [[ $pinned == true ]]; then mapfile -t options < <(unpack_options); fi
  write_tarball 2>>"$log" | xz -dcT0 2>>"$log" |
    tar -x -C "$work/source" --strip-components=1 "${options[@]}" 2>>"$log"
}

unpack_source() {
  [[ $pinned == true ]] || require_disk "$NEEDED_UNPINNED_MIB"
  mkdir -p "$work/source"
  run_job unpack_tarball || die_with_log "the source can't be unpacked"
  [[ -f $work/source/Kconfig && -d $work/source/arch/um ]] ||
    die_with_log "$source_name $source_version holds no kernel source"
  # The download is not needed any more, and takes as much room as the build.
  if [[ $source_file == "$work"/* ]]; then rm -f -- "$source_file"; fi
}

apply_patches() {
  local patch
  for patch in "${patches[@]}"; do
    patch -p1 -d "$work/source" --forward --fuzz=0 --no-backup-if-mismatch <"$patch" >>"$log" 2>&1 ||
      die_with_log "patch ${patch##*/} doesn't apply to $source_name $source_version"
  done
}

# An environment of our own: what a person has exported (ARCH, CFLAGS, MAKEFLAGS of an outer make)
# would be part of the kernel. Names and dates are fixed: the same inputs give the same bytes.
kernel_make() {
  env -i PATH="$PATH" HOME="$work" TMPDIR="$work" LC_ALL=C \
    KBUILD_BUILD_TIMESTAMP='2026-01-01 00:00:00 UTC' KBUILD_BUILD_VERSION=1 \
    KBUILD_BUILD_USER=measuretwice KBUILD_BUILD_HOST=kit \
    "$@" >>"$log" 2>&1 </dev/null
}

make_config() {
  cd "$work/source" && kernel_make KCONFIG_ALLCONFIG="$here/config" make ARCH=um allnoconfig
}

configure() {
  local line
  run_job make_config || die_with_log "the kernel's configuration failed"
  while IFS= read -r line; do
    grep -qxF -- "$line" "$work/source/.config" && continue
    [[ $pinned == true ]] && die_with_log "$source_name $source_version doesn't take $line"
    say "$source_name $source_version doesn't know $line: going on without it"
  done < <(grep '^CONFIG_' "$here/config")
}

make_linux() {
  cd "$work/source" && kernel_make make ARCH=um LOCALVERSION=-measuretwice -j"$(nproc)" linux
}

compile() {
  local done_files
  start_job make_linux
  while kill -0 "$job" 2>/dev/null; do
    done_files=$(grep -cE '^  (CC|AS) ' "$log") || true
    ((done_files < EXPECTED_FILES)) || done_files=$((EXPECTED_FILES - 1))
    show_progress "compiling the kernel: $done_files of $EXPECTED_FILES files, $((100 * done_files / EXPECTED_FILES)) %, $(printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)))"
    sleep 0.5
  done
  clear_progress
  finish_job || die_with_log "the build failed"
  [[ -x $work/source/linux ]] || die_with_log "the build left no kernel"
}

# assemble DIRECTORY: the folder as it will stand in the cache.
assemble() {
  local ready=$1
  mkdir -p "$ready"
  strip -o "$ready/linux" "$work/source/linux" 2>>"$log" || die_with_log "the kernel can't be stripped"
  run_job make_root "$ready/root" 2>>"$log" || die_with_log "the programs inside can't be put together"
  cp -- "$work/source/.config" "$ready/config"
  chmod 755 "$ready/linux"
  cat >"$ready/kernel.json" <<END
{
  "version": "$(cat "$work/source/include/config/kernel.release")",
  "key": "$key",
  "source": "$source_name",
  "source_version": "$source_version",
  "source_sha256": "$source_sha256",
  "pinned": $pinned,
  "config_sha256": "$(hash_of_file "$here/config")",
  "patches_sha256": "$(hash_of_patches)",
  "sampler_sha256": "$(hash_of_file "$here/ss-sampler.c")",
  "packages_sha256": "$(packages | hash_of)",
  "programs": {$(programs_json)
  },
  "compiler": "$(gcc --version | head -n 1 | tr -d '"')",
  "linux_sha256": "$(hash_of_file "$ready/linux")",
  "origin": "built",
  "build_seconds": $SECONDS
}
END
}

# --- a prebuilt archive --------------------------------------------------------------------------

# fetch WHERE FILE: a URL or a path becomes FILE.
fetch() {
  case $1 in
    http://* | https://*)
      if command -v curl >/dev/null; then
        curl -fsSL --retry 2 --connect-timeout 20 --speed-limit 1000 --speed-time 30 -o "$2" "$1" 2>>"$log"
      elif command -v wget >/dev/null; then
        wget -q --tries=3 --timeout=20 -O "$2" "$1" 2>>"$log"
      else
        python3 -c 'import shutil, sys, urllib.request as u
with u.urlopen(sys.argv[1], timeout=20) as r, open(sys.argv[2], "wb") as f: shutil.copyfileobj(r, f)' \
          "$1" "$2" 2>>"$log"
      fi
      ;;
    *) cp -- "$1" "$2" 2>>"$log" ;;
  esac
}

take_prebuilt() { # WHERE SHA256 DIRECTORY
  local where=$1 wanted=$2 ready=$3 archive=$work/prebuilt.tar.gz seen field
  [[ $where != *://* || $where =~ ^https?:// ]] || die "$where: only http, https and files are understood"
  say "getting the prebuilt kernel $where"
  run_job fetch "$where" "$archive" || die "can't get $where: $(tail -n 1 "$log")"
  if [[ -z $wanted ]]; then
    run_job fetch "$where.sha256" "$work/prebuilt.sha256" ||
      die "$where is not pinned: set MEASURETWICE_KERNEL_SHA256 to the SHA-256 that you trust, or put it in $where.sha256"
    read -r wanted _ <"$work/prebuilt.sha256" || true
    say "its checksum is pinned by $where.sha256, from the same place: set MEASURETWICE_KERNEL_SHA256 to be sure"
  fi
  [[ ${wanted,,} =~ ^[0-9a-f]{64}$ ]] || die "'$wanted' is not a SHA-256"
  seen=$(hash_of_file "$archive")
  [[ $seen == "${wanted,,}" ]] || die "wrong checksum: $where is $seen, expected ${wanted,,}; nothing was unpacked"

  mkdir -p "$ready"
  tar -xzf "$archive" -C "$ready" --no-same-owner linux config kernel.json root 2>>"$log" ||
    die "$where is not an archive made by pack.sh"
  [[ -f $ready/linux && ! -L $ready/linux && -f $ready/kernel.json && ! -L $ready/kernel.json ]] ||
    die "$where is not an archive made by pack.sh"
  # ELF, 64-bit, little-endian; machine 0x3e is x86-64
  [[ $(od -An -tx1 -N6 "$ready/linux" | tr -d ' ') == 7f454c460201 &&
  $(od -An -tx1 -j18 -N2 "$ready/linux" | tr -d ' ') == 3e00 ]] ||
    die "$where holds no program for x86-64"
  field=$(json_field "$ready/kernel.json" key)
  [[ $field == "$key" ]] ||
    die "$where is another kernel: its key is ${field:-missing}, this checkout wants $key"
  field=$(json_field "$ready/kernel.json" linux_sha256)
  [[ $field == "$(hash_of_file "$ready/linux")" ]] ||
    die "$where is damaged: its kernel is not the one that its kernel.json describes"
  sed -i 's/"origin": "built"/"origin": "prebuilt"/' "$ready/kernel.json"
}

# --- getting it ready ----------------------------------------------------------------------------

die_with_log() {
  local kept=$root/last-failure.log
  cp -- "$log" "$kept" 2>/dev/null || kept='(which could not be kept)'
  die "$1: see $kept"
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
  rm -rf -- "$root"/.build-* "$root"/.ready-* "$folder"
  mkdir -m 700 -- "$folder" 2>/dev/null || die "can't write to ${folder%/*}"
  work=$folder
}

take_lock() {
  if ! mkdir -p -- "$root" 2>/dev/null || ! : 2>/dev/null >>"$root/lock"; then
    die "can't write to the cache $root: set MEASURETWICE_CACHE to a folder of yours"
  fi
  exec {lock}>>"$root/lock"
  if ! flock -n "$lock"; then
    say "another build of the kernel is under way: waiting for it"
    flock "$lock"
  fi
}

get_ready() {
  local ready
  root=$(cache_root)
  key=$(cache_key)
  if is_ready "$root/$key"; then
    printf '%s\n' "$root/$key"
    return
  fi
  if [[ -z $prebuilt ]]; then require_tools; fi
  is_x86_64 || die "the virtual kernel runs on x86-64 Linux only, this is $(uname -m)"
  take_lock
  if is_ready "$root/$key"; then
    printf '%s\n' "$root/$key"
    return
  fi
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  choose_work_folder
  log=$work/log
  : >"$log"
  ready=$root/.ready-$key
  SECONDS=0

  if [[ -n $prebuilt ]]; then
    take_prebuilt "$prebuilt" "$sha256" "$ready"
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
    apply_patches
    if [[ -n $tarball ]]; then
      find_archives
      fetch_programs
    fi
    configure
    compile
    run_job build_iproute2 || die_with_log "the build of iproute2 failed"
    assemble "$ready"
  fi
  rm -rf -- "${root:?}/$key"
  mv -T -- "$ready" "$root/$key"
  rm -f -- "$root/last-failure.log"
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

json_text() {
  local text=${1//\\/\\\\}
  printf '%s' "${text//\"/\\\"}" | tr -d '\000-\037'
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
  mapfile -t missing < <(missing_packages)
  parent=$root
  while [[ ! -d $parent ]]; do parent=$(dirname -- "$parent"); done
  printf '{\n  "cpu_ok": %s,\n' "$(is_x86_64 && echo true || echo false)"
  printf '  "cores": %s,\n' "$(nproc)"
  printf '  "amx": %s,\n' "$(grep -qw amx_tile /proc/cpuinfo 2>/dev/null && echo true || echo false)"
  printf '  "seccomp": %s,\n' "$(grep -qw trap /proc/sys/kernel/seccomp/actions_avail 2>/dev/null && echo true || echo false)"
  # Without it the kernel's addresses, and with them the size of its memory, differ from run to run.
  printf '  "fixed_addresses": %s,\n' "$(setarch -R true 2>/dev/null && echo true || echo false)"
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
tarball=
prebuilt=${MEASURETWICE_KERNEL:-}
sha256=${MEASURETWICE_KERNEL_SHA256:-}
while (($#)); do
  case $1 in
    --help | -h)
      usage
      exit 0
      ;;
    --key) action=cache_key ;;
    --path) action=path ;;
    --check) action=print_facts ;;
    --smoke) action=smoke_test ;;
    --prebuilt | --tarball | --sha256)
      (($# >= 2)) || die_usage "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
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
  prebuilt=
fi

case $action in
  path)
    is_ready "$(cache_root)/$(cache_key)" || exit 3
    printf '%s/%s\n' "$(cache_root)" "$(cache_key)"
    ;;
  *) "$action" ;;
esac
