# The arm64 libraries of Debian, unpacked in a directory; to be sourced by bash after server/setup.sh and
# tests/debian/systems.sh. Needs root.

# suite_here: the Debian that this machine has, 12 or 13, whose cross compiler wants libraries of the same age.
suite_here() {
  local number
  number=$(. /etc/os-release && printf '%s' "${VERSION_ID:-}")
  [[ ${suites[$number]:-} ]] || fail "needs Debian 12 or 13"
  printf '%s' "${suites[$number]}"
}

# make_sysroot TARGET: unpacks what the run and test parts of packages.txt link. Runs none of their scripts, and so makes
# the links that those would have made. Programs that take part in a build are this machine's.
make_sysroot() {
  local target=$1 suite main security wanted library program
  wanted=$(packages_of run test | grep -e '-dev$' | sort -u | paste -sd,)
  [[ $(cat "$target.packages" 2>/dev/null) != "$wanted" || ! -d $target ]] || return 0
  suite=$(suite_here)
  main=$(mirror_of Debian) security=$(mirror_of Debian-Security)
  [[ $main && $security ]] || fail "apt has no mirror of Debian and Debian-Security here"
  say "Unpacking Debian's libraries for arm64 in $target"
  rm -rf --one-file-system "$target" "$target.packages"
  mkdir -p "$(dirname "$target")"
  apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-Valid-Until|Check-Date)[ :]' >"$target.apt" || true
  mmdebstrap --quiet --mode=root --variant=extract --architectures=arm64 --include="$wanted" --aptopt="$target.apt" \
    "$suite" "$target" "deb $main $suite main" "deb $main $suite-updates main" "deb $security $suite-security main"
  for library in blas lapack; do
    ln -sf "$library/lib$library.so.3" "$target/usr/lib/aarch64-linux-gnu/lib$library.so.3"
    ln -sf "lib$library.so.3" "$target/usr/lib/aarch64-linux-gnu/lib$library.so"
  done
  for program in /usr/bin/grpc_*_plugin; do ln -s "$program" "$target/usr/bin/"; done
  printf '%s\n' "$wanted" >"$target.packages"
}
