#!/usr/bin/env bash
# Prints the path of Vale, which `make lint` reads the prose with: found on PATH or in the cache, or else got ready.
# Everything else that it has to say goes to stderr.
#
#   vale.sh             get it ready where it isn't there; exit 1 where that can't be done
#   vale.sh --no-get    exit 3 where it isn't there
#
# It is a Go module, so go builds it. The package of that name on PyPI is only a script, which fetches the program at its
# first start from where its authors publish it: this is for machines without go.
set -euo pipefail

VERSION=3.21.0
MODULE=github.com/vale-cli/vale/v3/cmd/vale
# From this one on, go fetches a newer one of itself where a module asks for it.
LEAST_GO=21

cache=${MEASURETWICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/measuretwice}/vale/$VERSION

say() { printf '%s\n' "$*" >&2; }

# is_pinned PROGRAM: does it start, and is it that version?
is_pinned() { [[ $("$1" --version 2>/dev/null) == "vale version $VERSION" ]]; }

# can_build: is there a go that is new enough, with a C compiler? Parts of Vale are in C.
can_build() {
  local version compiler
  version=$(go env GOVERSION 2>/dev/null) && compiler=$(go env CC) || return 1
  [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= LEAST_GO)) && command -v "${compiler%% *}" >/dev/null
}

# build FOLDER: with go, into FOLDER.
build() {
  say "building vale $VERSION with go: a minute on two cores, once (70 MB to download, 45 MB in $cache)"
  GOBIN=$1 CGO_ENABLED=1 nice go install -trimpath -ldflags "-s -w -X main.version=$VERSION" "$MODULE@v$VERSION" >"$1/log" 2>&1 ||
    { say "go can't build it: $(tail -n 1 -- "$1/log")" && return 1; }
}

# fetch FOLDER: by PyPI's package, into FOLDER.
fetch() {
  say "fetching vale $VERSION by its package on PyPI: half a minute, once (20 MB to download, 60 MB in $cache)"
  {
    python3 -m venv "$1/venv" && "$1/venv/bin/python" -m pip install --quiet --disable-pip-version-check "vale==$VERSION.*"
  } >>"$1/log" 2>&1 || return 1
  # At its first start it fetches the program, and puts it beside itself.
  "$1/venv/bin/vale" --version >>"$1/log" 2>&1 || return 1
  cp -- "$1"/venv/lib/python3*/site-packages/vale/vale_bin "$1/vale" && is_pinned "$1/vale"
}

if program=$(type -P vale) && is_pinned "$program"; then
  printf '%s\n' "$program"
  exit
fi
if [[ -x $cache/vale ]]; then
  printf '%s\n' "$cache/vale"
  exit
fi
[[ ${1:-} != --no-get ]] || exit 3

mkdir -p -- "${cache%/*}"
# One at a time: who waited finds it in the cache. Where there is no flock (util-linux), each gets its own.
exec 9>"${cache%/*}/lock"
if command -v flock >/dev/null; then flock 9; fi
if [[ ! -x $cache/vale ]]; then
  part=$(mktemp -d -- "${cache%/*}/part.XXXXXX")
  trap 'chmod -R u+w -- "$part"; rm -rf -- "$part"' EXIT
  if ! { can_build && build "$part"; } && ! fetch "$part"; then
    tail -n 3 -- "$part/log" 2>/dev/null | sed 's/^/  | /' >&2 || true
    say "vale.sh: no vale $VERSION here: install go 1.$LEAST_GO or newer and a C compiler, or put Vale's own release of this version on PATH; then run this again"
    exit 1
  fi
  mkdir -p -- "$cache"
  mv -- "$part/vale" "$cache/vale"
fi
printf '%s\n' "$cache/vale"
