#!/usr/bin/env bash
# Usage: make_root.sh BUILD_BIN ROOT VERSION
# Makes the file system of the image: the two programs, stripped, and the libraries that they load; no shell and no package
# manager. Of each Debian package that a file is from it keeps what scanners read: the entry in dpkg's status.d, the
# copyright file, and a line in an SPDX document. The same input makes the same bytes; times are those of SOURCE_DATE_EPOCH.
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
    [[ $library != /lib64/* ]] || folder=$root/usr/lib64
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

# A package in tag-value form: identifier, name, version, licence, place.
describe_package() {
  printf '\nPackageName: %s\nSPDXID: SPDXRef-%s\nPackageVersion: %s\nPackageDownloadLocation: NOASSERTION\n' "$2" "$1" "$3"
  printf 'FilesAnalyzed: false\nPackageLicenseConcluded: NOASSERTION\nPackageLicenseDeclared: %s\n' "$4"
  printf 'PackageCopyrightText: NOASSERTION\n%sRelationship: %s SPDXRef-%s\n' "${5:+ExternalRef: PACKAGE-MANAGER purl $5
}" "$6" "$1"
}

source /etc/os-release
{
  printf 'SPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0\nSPDXID: SPDXRef-DOCUMENT\nDocumentName: attendant-%s\n' "$version"
  printf 'DocumentNamespace: urn:attendant:image:%s:%s\n' "$version" "${SOURCE_DATE_EPOCH:-0}"
  printf 'Creator: Tool: make_root.sh\nCreated: %s\n' "$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)"
  describe_package attendant attendant "$version" Apache-2.0 "" "SPDXRef-DOCUMENT DESCRIBES"
  sort -u <<<"$packages" | while read -r package; do
    dpkg-query -s "$package" | sed '/^Status: /d' >"$root/var/lib/dpkg/status.d/$package"
    install -D -m 644 "$(readlink -f "/usr/share/doc/$package/copyright")" "$documents/$package/copyright"
    read -r full arch < <(dpkg-query -W -f '${Version} ${Architecture}\n' "$package")
    purl=$(sed 's/:/%3A/g; s/+/%2B/g; s/~/%7E/g' <<<"$package@$full")
    describe_package "Package-${package//[^a-zA-Z0-9.-]/-}" "$package" "$full" NOASSERTION \
      "pkg:deb/debian/$purl?arch=$arch&distro=debian-$VERSION_ID" "SPDXRef-attendant DEPENDS_ON"
  done
} >"$documents/attendant/attendant.spdx"

find "$root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
