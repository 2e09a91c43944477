#!/usr/bin/env bash
# Usage: build_wheel.sh [FOLDER]
# Builds the wheel of the Python client into FOLDER, build/wheel by default, and prints its path.
set -euo pipefail
source "$(dirname "$0")/../../server/setup.sh"
folder=$(realpath -m "${1:-$ATTENDANT_ROOT/build/wheel}")
install_packages wheel
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
/usr/bin/python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" wheel -q --no-deps --wheel-dir "$scratch/wheel" "$ATTENDANT_ROOT/client/python" >&2
mkdir -p "$folder"
install -m 644 "$scratch"/wheel/attendant_client-*.whl "$folder/"
echo "$folder/$(basename "$scratch"/wheel/attendant_client-*.whl)"
