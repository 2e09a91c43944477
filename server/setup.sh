# Common setup for server/run and tests/run, sourced by bash. Installs only Debian packages.

readonly ATTENDANT_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# packages_of PART…: prints the packages in these parts of packages.txt.
packages_of() {
  awk -v parts=" $* " '
    { sub(/#.*/, ""); gsub(/[ \t]+/, "") }
    /^\[.*\]$/ { wanted = index(parts, " " substr($0, 2, length($0) - 2) " "); next }
    wanted && $0 != "" { print }' "$ATTENDANT_ROOT/server/packages.txt"
}

# install_packages PART…: installs missing packages; changes nothing if all are present.
install_packages() {
  local missing=() package
  for package in $(packages_of "$@"); do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    say "Packages: all installed"
    return
  fi
  command -v apt-get >/dev/null || fail "requires Debian 12 or 13 (apt-get not found). Missing packages: ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "run as root, or install sudo. Missing packages: ${missing[*]}"
    as_root=(sudo)
  fi
  say "Packages: installing ${missing[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# build PRESET [-DNAME=VALUE…] [TARGET…]: configures and builds; fast if nothing has changed.
build() {
  local preset=$1 options=()
  shift
  while [[ ${1:-} == -D* ]]; do
    options+=("$1")
    shift
  done
  say "Building ${*:-everything} (preset $preset; the first build takes minutes)"
  cd "$ATTENDANT_ROOT"
  cmake --preset "$preset" "${options[@]}" >"/tmp/attendant-configure.$$" 2>&1 || {
    cat "/tmp/attendant-configure.$$" >&2
    fail "cmake could not configure the build"
  }
  rm -f "/tmp/attendant-configure.$$"
  cmake --build "build/$preset" ${1:+--target "$@"} >&2
}

# build_programs: builds the server and the client in the build directory of tests/run, so that neither command repeats the
# other's work. Tests only add targets there and do not change flags. A new directory is configured without tests, which need
# more packages; an existing directory keeps its tests.
build_programs() {
  local options=()
  [[ -e $ATTENDANT_ROOT/build/release/CMakeCache.txt ]] || options=(-DATTENDANT_TESTS=OFF)
  build release "${options[@]}" attendant-server attendant-client
}
