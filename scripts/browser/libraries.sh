#!/usr/bin/env bash
# Gets what the site's pages load beside the machine, libraries.txt, and prints the folder it is in: found in the
# cache, unpacked from machines/, or fetched. Everything else that it has to say goes to stderr.
set -euo pipefail

NEEDED_MIB=80

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
me=browser/${0##*/}
# shellcheck disable=SC2034 # for tools.sh
kind=browser shipped_as=libraries
# shellcheck source=scripts/kernel/tools.sh
. "$here/../kernel/tools.sh"
# shellcheck source=scripts/kernel/source.sh
. "$here/../kernel/source.sh"
# shellcheck source=scripts/browser/npm.sh
. "$here/npm.sh"

usage() {
  cat <<END
Usage: $me [option]
Gets the libraries that the site's pages load beside the browser's machine, and prints their folder.

  (no option)   find them in the cache, unpack those that come with the checkout, or fetch those in libraries.txt from npm
  --path        print the folder if it is ready, else exit with 3
  --key         print its name

The cache is \${MEASURETWICE_CACHE:-\${XDG_CACHE_HOME:-~/.cache}/measuretwice}/browser.
Exit codes: 0 ready, 1 they can't be had (one line says why), 2 wrong usage, 3 not ready (--path).
END
}

libraries() { grep -vE '^(#|$)' "$here/libraries.txt"; }

get_ready() {
  local package version sha512 files file tool ready
  root=$(cache_root)
  key=$1
  [[ ! -d $root/$key ]] || return 0
  for tool in npm openssl; do
    comes_with_checkout || command -v "$tool" >/dev/null || die "to fetch libraries this Debian package is missing: sudo apt install $tool"
  done
  take_lock
  [[ ! -d $root/$key ]] || return 0
  ready=$root/.ready-$key
  begin_build
  if comes_with_checkout; then
    take_shipped "$ready"
    keep_build "$ready"
    return
  fi
  require_disk "$NEEDED_MIB"
  say "fetching what pages load beside the browser's machine: 8 MB"
  mkdir -p "$ready"
  while read -r package version sha512 files; do
    fetch_npm "$package" "$version" "$sha512" "$work/package"
    for file in $files; do
      if [[ $file == *.gz ]]; then
        gzip -9n <"$work/package/${file%%=*}" >"$ready/${file##*=}"
      else
        cp -- "$work/package/${file%%=*}" "$ready/${file##*=}"
      fi
    done
  done < <(libraries)
  keep_build "$ready"
}

key=libraries-$(libraries | hash_of | cut -c1-12)
case ${1:-} in
  '') get_ready "$key" ;;
  --key)
    printf '%s\n' "$key"
    exit
    ;;
  --path) [[ -d $(cache_root)/$key ]] || exit 3 ;;
  --help | -h)
    usage
    exit
    ;;
  *) die_usage "unknown option $1" ;;
esac
printf '%s/%s\n' "$(cache_root)" "$key"
