#!/usr/bin/env bash
# Usage: make_deb.sh [FOLDER]
# Builds the programs and packs them for the Debian that it runs on, 12 or 13, as
# FOLDER/attendant_VERSION_debianRELEASE_ARCHITECTURE.deb, and prints the path. Default FOLDER: build/deb.
# Installs what it needs. SOURCE_DATE_EPOCH, if set, is the time of all files.
set -euo pipefail
source "$(dirname "$0")/../server/setup.sh"
folder=$(realpath -m "${1:-$ATTENDANT_ROOT/build/deb}")
source /etc/os-release
[[ ${ID:-} == debian && ${VERSION_ID:-} == 1[23] ]] || fail "expected Debian 12 or 13; got ${PRETTY_NAME:-no name}"

install_packages run deb
build_programs
say "Packing"
umask 022  # the permissions of folders in the package
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && cpack --config "$ATTENDANT_ROOT/build/release/CPackConfig.cmake" -B "$scratch" >&2)
packed=$(echo "$scratch"/*.deb)
# A name that no file server changes: GitHub writes "." for "~".
version=$(dpkg-deb --field "$packed" Version) architecture=$(dpkg-deb --field "$packed" Architecture)
package=$folder/attendant_${version%%-*}_debian${VERSION_ID}_$architecture.deb
mkdir -p "$folder"
install -m 644 "$packed" "$package"
echo "$package"
