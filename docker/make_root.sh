#!/usr/bin/env bash
# Usage: make_root.sh BUILD_BIN ROOT VERSION
# Makes the file system of the image: the two programs, stripped, and the libraries that they load; no shell, no package
# manager. For scanners it keeps, of each Debian package used, the entry in dpkg's status.d, the copyright file, and an entry
# in an SPDX document. The same input gives the same bytes; times are SOURCE_DATE_EPOCH.
set -euo pipefail
bin=$1 root=$2 version=$3
architecture=$(gcc -print-multiarch)
documents=$root/usr/share/doc
mkdir -p "$root"/{etc,models,proc,sys,dev,var/lib/dpkg/status.d,usr/{bin,lib64,"lib/$architecture"}} "$documents/attendant"
mkdir -m 1777 "$root/tmp"
install -d -o 65532 -g 65532 "$root/cache"  # of models of the Hub
for folder in bin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done
install -s -m 755 "$bin/attendant-server" "$bin/attendant-client" "$root/usr/bin/"
install -m 644 "$(dirname "$0")/../LICENSE" "$documents/attendant/copyright"

# Prints the package that owns a file. dpkg knows it only by the path in the package, which may lack the /usr of the real one.
owner_of() {
  local found
  found=$(dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "${1#/usr}")
  echo "${found%%:*}"
}

# A library is looked for by the name that ldd prints, a link to the file with its whole version.
packages=$(
  owner_of /etc/os-release
  owner_of /usr/share/ca-certificates/mozilla
  ldd "$root"/usr/bin/* | grep -o '/[^ ]*' | grep -v "^$root" | sort -u | while read -r library; do
    folder=$root/usr/lib/$architecture
    case $library in  # the loader, where the programs look for it
      /lib64/*) folder=$root/usr/lib64 ;;
      /lib/ld-linux-*) folder=$root/usr/lib ;;
    esac
    install -m 755 "$(readlink -f "$library")" "$folder/$(basename "$library")"
    owner_of "$(readlink -f "$library")"
  done
)
# The authorities of HTTPS, where libcurl looks for them: one file, which the package makes.
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
install -m 644 "$(readlink -f /etc/os-release)" "$root/usr/lib/os-release"
ln -s ../usr/lib/os-release "$root/etc/os-release"
printf '%s\n' 'root:x:0:0::/:/usr/sbin/nologin' 'attendant:x:65532:65532::/:/usr/sbin/nologin' >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'attendant:x:65532:' >"$root/etc/group"
printf '%s\n' 'hosts: files dns' >"$root/etc/nsswitch.conf"

# describe_package ID NAME VERSION LICENCE [PURL]: an element of the array `packages`. No name or version of Debian's has a
# character that JSON would escape.
describe_package() {
  local reference=
  [[ -z ${5:-} ]] ||
    reference='{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "'$5'"}'
  printf '{"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", "downloadLocation": "NOASSERTION", ' "$1" "$2" "$3"
  printf '"filesAnalyzed": false, "licenseConcluded": "NOASSERTION", "licenseDeclared": "%s", ' "$4"
  printf '"copyrightText": "NOASSERTION", "externalRefs": [%s]}' "$reference"
}

# relate ID TYPE ID: an element of the array `relationships`.
relate() {
  printf '{"spdxElementId": "SPDXRef-%s", "relationshipType": "%s", "relatedSpdxElement": "SPDXRef-%s"}' "$@"
}

source /etc/os-release
described=$(describe_package attendant attendant "$version" Apache-2.0)
related=$(relate DOCUMENT DESCRIBES attendant)
for package in $(sort -u <<<"$packages"); do
  dpkg-query -s "$package" | sed '/^Status: /d' >"$root/var/lib/dpkg/status.d/$package"
  install -D -m 644 "$(readlink -f "/usr/share/doc/$package/copyright")" "$documents/$package/copyright"
  read -r full arch < <(dpkg-query -W -f '${Version} ${Architecture}\n' "$package")
  purl=$(sed 's/:/%3A/g; s/+/%2B/g; s/~/%7E/g' <<<"$package@$full")
  id=Package-${package//[^a-zA-Z0-9.-]/-}
  described+=,$'\n  '$(describe_package "$id" "$package" "$full" NOASSERTION \
    "pkg:deb/debian/$purl?arch=$arch&distro=debian-$VERSION_ID")
  related+=,$'\n  '$(relate attendant DEPENDS_ON "$id")
done
cat >"$documents/attendant/attendant.spdx.json" <<EOF
{"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "attendant-$version",
 "documentNamespace": "urn:attendant:image:$version:${SOURCE_DATE_EPOCH:-0}",
 "creationInfo": {"creators": ["Tool: make_root.sh"],
  "created": "$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)"},
 "packages": [
  $described],
 "relationships": [
  $related]}
EOF

find "$root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
