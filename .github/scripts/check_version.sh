#!/usr/bin/env bash
# Usage: check_version.sh TAG
# Fails unless the tag is v and the version that every file of the tree states. GITHUB_REF_NAME is the default of TAG.
set -euo pipefail
cd "$(dirname "$0")/../.."
tag=${1:-${GITHUB_REF_NAME:?expected a tag as the argument or in GITHUB_REF_NAME; got neither}}

failed=false
# expect FILE PATTERN: the first line of the file that matches, by its group, is the version.
expect() {
  local found
  found=$(sed -nE "s/^$2.*/\1/p" "$1" | head -n 1)
  [[ $tag == "v$found" ]] && return
  echo "$1: expected the version of the tag $tag; got ${found:-none}" >&2
  failed=true
}
number='([0-9]+\.[0-9]+\.[0-9]+)'
expect CMakeLists.txt "project\(attendant VERSION $number"
expect client/python/pyproject.toml "version = \"$number\""
expect docker/Dockerfile "ARG VERSION=$number"
expect docker/chart/Chart.yaml "version: $number"
expect docker/chart/Chart.yaml "appVersion: $number"
expect CHANGELOG.md "## $number"
! $failed
