#!/usr/bin/env bash
# Usage: collect_runtime.sh BUILD_BIN TARGET
# Collects what the run-time image needs: installs the server and the client, stripped, into TARGET/bin and writes the
# names of the Debian packages that own the libraries they load to TARGET/packages.
set -euo pipefail
source_bin=$1 target=$2
mkdir -p "$target/bin"
install -s -m 755 "$source_bin/attendant-server" "$source_bin/attendant-client" "$target/bin/"
ldd "$target"/bin/* | awk '$3 ~ /^\// { print $3 }' | sort -u | xargs -n1 readlink -f | sort -u |
  while read -r library; do
    # dpkg knows a library only by the path in its package, which may lack the /usr of the real path.
    dpkg-query -S "$library" 2>/dev/null || dpkg-query -S "${library#/usr}"
  done | sed 's/:.*//' | sort -u >"$target/packages"
