#!/usr/bin/env bash
# Usage: make_checksums.sh FOLDER
# Writes FOLDER/SHA256SUMS over every other file there, for `sha256sum --check`.
set -euo pipefail
cd "${1:?expected a folder}"
rm -f SHA256SUMS
shopt -s nullglob
files=(*)
((${#files[@]})) || { echo "$1: expected files; got an empty folder" >&2; exit 1; }
for file in "${files[@]}"; do
  # GitHub changes other characters in the names of a release's files.
  [[ $file =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || { echo "$1/$file: expected letters, digits, \".\", \"_\" and \"-\" in the name" >&2; exit 1; }
done
sha256sum "${files[@]}" >SHA256SUMS
