#!/usr/bin/env bash
# Usage: publish_release.sh FOLDER
# Makes the GitHub release of the tag GITHUB_REF_NAME, with the section of CHANGELOG.md as its text and every file of FOLDER,
# whose checksums it writes first. IMAGE is the image of the release, NAME@DIGEST, which the text names. For gh: GH_TOKEN, and
# GH_REPO where this folder is no clone.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?expected a folder with the files of the release}
tag=${GITHUB_REF_NAME:?expected a tag in GITHUB_REF_NAME} image=${IMAGE:?expected NAME@DIGEST in IMAGE}

notes=$("$here/release_notes.sh" "${tag#v}")
"$here/make_checksums.sh" "$folder"
gh release create "$tag" --verify-tag --title "Attendant ${tag#v}" \
  --notes "$notes"$'\n\n'"Container image: \`$image\`" "$folder"/*
