#!/usr/bin/env bash
# Usage: push_image.sh NAME FOLDER [flags of buildah login and push…]
# Pushes the local image NAME to a registry with the tags VERSION and latest, and prints REPOSITORY@DIGEST. Copies the list
# of its contents, attendant.spdx.json, to FOLDER. For arm64 (experimental), the tags are VERSION-arm64 and latest-arm64, and the
# list is attendant-arm64.spdx.json.
# From the environment: IMAGE_REPOSITORY, by default ghcr.io/ and GITHUB_REPOSITORY; GITHUB_ACTOR and REGISTRY_TOKEN, the
# account there, which stays in ~/.docker/config.json; GITHUB_OUTPUT, a file that gets lines "repository=…", "digest=…" and
# "image=REPOSITORY@DIGEST".
set -euo pipefail
source "$(dirname "$0")/../server/setup.sh"
name=${1:?expected the name of an image} folder=${2:?expected a folder}
shift 2
repository=${IMAGE_REPOSITORY:-ghcr.io/${GITHUB_REPOSITORY:?expected OWNER/NAME in it, or IMAGE_REPOSITORY}}
repository=${repository,,}  # registries refuse capitals
install_packages image
version=$(sed -nE 's/^project\(attendant VERSION ([0-9.]+).*/\1/p' "$ATTENDANT_ROOT/CMakeLists.txt")
architecture=$(buildah inspect --type image --format '{{.OCIv1.Architecture}}' "$name")
suffix=
[[ $architecture == amd64 ]] || suffix=-$architecture
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say "Taking the list of contents out of $name"
buildah push --quiet "$name" "dir:$scratch/image" >&2
for layer in "$scratch"/image/*; do
  # Only a layer is an archive, and only one of them has the file.
  tar -xOf "$layer" usr/share/doc/attendant/attendant.spdx.json >"$scratch/spdx" 2>/dev/null && break
done
[[ -s $scratch/spdx ]] || fail "$name: expected usr/share/doc/attendant/attendant.spdx.json in it; got no such file"
mkdir -p "$folder"
install -m 644 "$scratch/spdx" "$folder/attendant$suffix.spdx.json"

say "Pushing $repository:$version$suffix"
account=(--authfile "$HOME/.docker/config.json")
mkdir -p "$HOME/.docker"
buildah login "${account[@]}" "$@" --username "${GITHUB_ACTOR:?}" --password-stdin "${repository%%/*}" \
  <<<"${REGISTRY_TOKEN:?}" >&2
for tag in "$version$suffix" "latest$suffix"; do
  buildah push --quiet "${account[@]}" "$@" --digestfile "$scratch/digest" "$name" "docker://$repository:$tag" >&2
done
digest=$(cat "$scratch/digest")
printf '%s\n' "repository=$repository" "digest=$digest" "image=$repository@$digest" >>"${GITHUB_OUTPUT:-/dev/null}"
echo "$repository@$digest"
