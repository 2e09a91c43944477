# Empty Debian systems in folders; to be sourced by bash behind server/setup.sh. Needs root.

declare -rA suites=([12]=bookworm [13]=trixie)

# mirror_of LABEL: the first one that apt has here of Debian, or of Debian-Security.
mirror_of() {
  apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
    awk -v label="$1" '$1 == label && !found++ { print $2 }'
}

# make_system NUMBER TARGET: an empty one in that folder, from the mirrors and with the proxies that apt has here.
make_system() {
  local suite=${suites[$1]} target=$2 main security
  [[ ! -d $target ]] || return 0
  say "Making an empty Debian $1 in $target"
  mkdir -p "$(dirname "$target")"
  apt-get update -qq
  # Debian 12's first keyrings do not have the keys of Debian 13; its newest one does.
  compgen -G "/usr/share/keyrings/debian-archive-$suite-stable.*" >/dev/null ||
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debian-archive-keyring >/dev/null
  main=$(mirror_of Debian) security=$(mirror_of Debian-Security)
  [[ $main && $security ]] || fail "apt has no mirror of Debian and Debian-Security here"
  apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-Valid-Until|Check-Date)[ :]' >"$target.apt" || true
  rm -rf --one-file-system "$target.part"
  mmdebstrap --quiet --mode=root --variant=minbase --aptopt="$target.apt" "$suite" "$target.part" \
    "deb $main $suite main" "deb $main $suite-updates main" "deb $security $suite-security main"
  mv "$target.part" "$target"
}
