#!/usr/bin/env bash
# Usage: release_notes.sh VERSION
# Prints the section of CHANGELOG.md, "## VERSION", without its heading.
set -euo pipefail
version=${1:?expected a version, such as 1.2.3}
notes=$(awk -v version="$version" '
  /^## / { wanted = $2 == version; next }
  wanted' "$(dirname "$0")/../../CHANGELOG.md")
if [[ -z ${notes//[[:space:]]/} ]]; then
  echo "CHANGELOG.md: expected a section \"## $version\" with text; got none; name the section \"Unreleased\" so" >&2
  exit 1
fi
sed '/./,$!d' <<<"$notes"  # no empty line at the beginning
