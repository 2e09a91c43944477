#!/usr/bin/env bash
# Usage: make_image.sh NAME [flags of buildah build…]
# Builds the image of docker/Dockerfile as NAME with buildah, which needs no daemon, and prints its identifier. The same
# commit has the same contents. SOURCE_DATE_EPOCH and REVISION, if set, take the place of the commit's time and hash.
set -euo pipefail
source "$(dirname "$0")/../server/setup.sh"
name=${1:?expected a name of the image}
shift
install_packages image
cd "$ATTENDANT_ROOT"
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
revision=${REVISION:-$(git rev-parse HEAD)}
# The format is Docker's, as OCI's has no health check.
buildah build --quiet --isolation chroot --format docker --timestamp "$epoch" --build-arg SOURCE_DATE_EPOCH="$epoch" \
  --build-arg REVISION="$revision" "$@" --tag "$name" --file docker/Dockerfile .
