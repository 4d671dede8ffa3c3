#!/usr/bin/env bash
# pack.sh FOLDER OUT.tar.gz: a kernel folder, as build.sh leaves it in the cache, becomes an archive
# that build.sh --prebuilt takes. Beside it stands its checksum. Same folder, same bytes.
set -euo pipefail

die() {
  printf '%s: %s\n' "${0##*/}" "$2" >&2
  exit "$1"
}

(($# == 2)) || die 2 "usage: ${0##*/} FOLDER OUT.tar.gz"
folder=$1 out=$2
files=(config kernel.json linux root)
for file in "${files[@]}"; do
  [[ -e $folder/$file ]] || die 1 "$folder is no kernel folder: $file is missing"
done

# Neither owner nor date nor order of the files on this disk may show.
tar -c -C "$folder" --sort=name --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner \
  --mode='u=rwX,go=rX' "${files[@]}" | gzip -9n >"$out.part"
mv -- "$out.part" "$out"
printf '%s  %s\n' "$(sha256sum <"$out" | cut -d' ' -f1)" "${out##*/}" >"$out.sha256"
