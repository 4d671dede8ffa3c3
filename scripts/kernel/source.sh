#!/usr/bin/env bash
# The kernel's source, pinned, for both builders: where it can be had, unpacked and patched; and other pinned
# files of Debian's. Read by build.sh, after tools.sh.
# shellcheck disable=SC2034,SC2154 # what builders set, and what they read

# --- the source that every result is tied to -----------------------------------------------------
PIN_PACKAGE=linux-source-7.2
PIN_VERSION='7.2.12-1~bpo13+1'
PIN_SHA256=73ca6c22599ba411ab3179642d33501ca2c90174e13c3c8d86e996ea1cbf2a8f
# The tar file inside the package, for people who have that.
PIN_TARBALL_SHA256=dd8cf7080e709d050ce2a14ace00d461a1ebb5d877f69fe70232de1818984fac
PIN_PLACE=pool/main/l/linux/linux-source-7.2_$PIN_VERSION'_all.deb'
# Where to look for the nearest other version once the pinned one has left the archive.
NEAREST_SUITES=(trixie-backports testing unstable)
# What the download takes, measured.
EXPECTED_DOWNLOAD_BYTES=164744800

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
APT::Sandbox::User "$(id -un 2>/dev/null)";
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

# Where files were asked for, as one line; a password in an address is nobody's to read.
asked_archives() {
  printf '%s\n' "${archives[@]%%$'\t'*}" | sed -E 's|//[^/@]*@|//|' | awk '!seen[$0]++ { printf "%s%s", separator, $0; separator = ", " }'
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
  ((${#archives[@]})) || [[ -n $sources ]] ||
    die "none of this machine's apt sources is the Debian archive: set MEASURETWICE_MIRROR to a mirror of it, or name a folder of kept sources with --sources"
  apt_root=$work/apt
  write_apt_conf "$apt_root"
}

# Where what is fetched is kept (--keep-sources), and where it was kept before (--sources).
keep_sources='' sources=''
# Only who builds fetches.
take_folder() { # OPTION FOLDER
  on_purpose=build
  [[ $1 != --sources || -d $2 ]] || die_usage "--sources $2: there is no such folder"
  [[ $1 != --keep-sources ]] || { mkdir -p -- "$2" 2>/dev/null && [[ -w $2 ]]; } || die_usage "--keep-sources $2: can't be written to"
  if [[ $1 == --sources ]]; then sources=$(cd -- "$2" && pwd); else keep_sources=$(cd -- "$2" && pwd); fi
}

# kept_before FILE: take it from the folder of sources, where it is there.
kept_before() {
  [[ -n $sources && -f $sources/${1##*/} ]] && cp -- "$sources/${1##*/}" "$1"
}

# keep FILE...: in the folder for sources, if one is named.
keep() {
  [[ -z $keep_sources ]] || cp -- "$@" "$keep_sources/" || die "--keep-sources: can't write to $keep_sources"
}

# fetch_pinned FOLDER WHAT BYTES (PLACE SHA256)...: files by their places in a mirror. They are told by
# their checksums, so any mirror will do, and Debian's lists needn't be fetched. Fails where one isn't to be had.
fetch_pinned() {
  local folder=$1 what=$2 bytes=$3 entry file
  local -a pinned_files=("${@:4}") lacking
  local -i i
  mkdir -p "$folder"
  for ((i = 0; i < ${#pinned_files[@]}; i += 2)); do
    kept_before "$folder/${pinned_files[i]##*/}" || true
  done
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
    keep "$file"
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

# What else there is, where a mirror no longer has what a build needs.
other_ways='The machine that comes with the checkout, machines/*.tar.xz, is made of it and needs no mirror; --sources DIR takes what somebody kept'

fetch_nearest_source() {
  local entry uri signed found=''
  local official=/usr/share/keyrings/debian-archive-keyring.gpg
  local -a all=("${archives[@]}")
  command -v apt-get >/dev/null || die "$(asked_archives): none has $PIN_PACKAGE $PIN_VERSION any more, or none can be reached. Is there a network? $other_ways"
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
  [[ -n $found ]] || die "can't get linux-source-7.* from $(asked_archives) ($(apt_complaint)). Is there a network, and does it reach them? $other_ways"
  pinned=false
  say "$PIN_PACKAGE $PIN_VERSION has left the archive: taking $source_name $source_version. Results will be near the recorded ones, not identical. $other_ways"
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

# --- building ------------------------------------------------------------------------------------

# What the build of the pinned version never reads: half of the tree, and of the time to unpack it.
unpack_options() {
  local folder
  for folder in gpu net/ethernet net/wireless media scsi clk pinctrl usb accel infiniband staging iio \
    video crypto platform md hwmon phy; do
    printf '%s\n' "--exclude=*/drivers/$folder/*.[ch]"
  done
  # Of other processors, only what describes their options is read; of the tools some settings need what others don't.
  printf '%s\n' '--exclude=*/arch/[!ux]*/*.[chS]' '--exclude=*/arch/[!ux]*/*.dts*' \
    '--exclude=*/Documentation/*/*' '--exclude=*/sound/*.[ch]'
  [[ ${more:-} ]] || printf '%s\n' '--exclude=*/tools/[!i]*/*'
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

apply_patches() { # PATCH...
  local patch
  for patch in "$@"; do
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

make_config() { # FILE
  cd "$work/source" && kernel_make KCONFIG_ALLCONFIG="$1" make ARCH="$arch" allnoconfig
}

# configure FILE: what it names, and nothing else.
configure() {
  local line
  run_job make_config "$1" || die_with_log "the kernel's configuration failed"
  while IFS= read -r line; do
    grep -qxF -- "$line" "$work/source/.config" && continue
    [[ $pinned == true ]] && die_with_log "$source_name $source_version doesn't take $line"
    say "$source_name $source_version doesn't know $line: going on without it"
  done < <(grep '^CONFIG_.*=[^n]' "$1")
}

make_kernel() { # TARGET
  cd "$work/source" && kernel_make make ARCH="$arch" "LOCALVERSION=-${local_version:-measuretwice}" ${kernel_flags:+"KCFLAGS=$kernel_flags"} \
    ${profile_flags:+"PROFILE_FLAGS=$profile_flags"} ${profile_libraries:+"PROFILE_LIBRARIES=$profile_libraries"} -j"$(nproc)" "$1"
}

compile() { # TARGET
  local done_files
  start_job make_kernel "$1"
  while kill -0 "$job" 2>/dev/null; do
    done_files=$(grep -cE '^  (CC|AS) ' "$log") || true
    ((done_files < EXPECTED_FILES)) || done_files=$((EXPECTED_FILES - 1))
    show_progress "compiling the kernel: $done_files of $EXPECTED_FILES files, $((100 * done_files / EXPECTED_FILES)) %, $(printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)))"
    sleep 0.5
  done
  clear_progress
  finish_job || die_with_log "the build failed"
}
