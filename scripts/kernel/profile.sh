#!/usr/bin/env bash
# Counts what of the virtual kernel runs how often, in trials of all labs, and writes profile.tar.xz, by which build.sh
# has it compiled: what runs often stands together and is made fast, what never ran is made small. Not one byte of a
# run follows from it. A quarter of an hour on two free cores, with the compiler that build.sh names (profile_compiler).
#
#   scripts/kernel/profile.sh [PYTHON]
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
top=$(cd -- "$here/../.." && pwd)
python=${1:-$top/.venv/bin/python}

work=$(mktemp -d /var/tmp/measuretwice-profile.XXXXXX)
trap 'rm -rf -- "$work"' EXIT
kernel=$(MEASURETWICE_CACHE=$work bash "$here/build.sh" --counting)
# The counts go where the files lay that were compiled.
counts=$work/kernel/.build-${kernel##*/}/source
mkdir -p -- "$counts"
PYTHONPATH=$top/src "$python" -P "$here/train.py" "$kernel" "$counts" >"$work/profile.txt"

(cd -- "$counts" && find . -name '*.gcda' -printf '%P\n' | LC_ALL=C sort |
  tar -c --no-recursion --owner=0 --group=0 --numeric-owner --mode=644 --mtime='2026-01-01 00:00Z' -T -) |
  xz -9e >"$here/profile.tar.xz"
mv -- "$work/profile.txt" "$here/profile.txt"
ls -l -- "$here/profile.tar.xz" >&2
