#!/usr/bin/env bash
# Usage: publish_wheel.sh FOLDER
# Uploads the wheel in FOLDER to PyPI. In a workflow, PyPI trusts the identity that GitHub gives the job; elsewhere twine's
# variables name the index and the account: TWINE_REPOSITORY_URL, TWINE_USERNAME, TWINE_PASSWORD.
set -euo pipefail
source "$(dirname "$0")/../../server/setup.sh"
folder=$(realpath "${1:?expected a folder}")
install_packages wheel
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
/usr/bin/python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install -q 'twine==7.0.0' >&2
"$scratch/venv/bin/twine" upload --non-interactive --disable-progress-bar "$folder"/attendant_client-*.whl
