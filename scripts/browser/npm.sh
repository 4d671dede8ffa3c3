#!/usr/bin/env bash
# Packages of npm, each held against its checksum. Read by build.sh and libraries.sh.
# shellcheck disable=SC2154 # work and log are theirs

# The machine's own npm settings count: its registry, proxy and certificates.
npm_pack() { (cd "$2" && npm pack --silent "$1" >>"$log" 2>&1 </dev/null); }

# fetch_npm PACKAGE VERSION SHA512 FOLDER: unpacked, where nothing was before.
fetch_npm() {
  local package=$1 version=$2 sha512=$3 folder=$4 archive
  rm -rf -- "$folder"
  mkdir -p -- "$folder"
  # as npm names it
  archive=$folder/$(tr '/' '-' <<<"${package#@}")-$version.tgz
  kept_before "$archive" || run_job npm_pack "$package@$version" "$folder" ||
    die_with_log "npm can't get $package $version"
  [[ $(openssl dgst -sha512 -binary "$archive" | base64 -w 0) == "$sha512" ]] ||
    die "wrong checksum: $package $version is not what results come from; nothing was unpacked"
  keep "$archive"
  tar -xzf "$archive" -C "$folder" --strip-components=1
}
