#!/usr/bin/env bash
# build_consumer.sh BUILD_DIR COMPILER SANITIZERS WITH_CLIENT: installs the build into a folder of its own, then
# configures, builds and runs tests/install/consumer, and the example of the client's library with a server, against
# nothing but that folder.
set -euo pipefail
build=$1 compiler=$2 sanitizers=$3 with_client=$4
here=$(cd "$(dirname "$0")" && pwd)
test=$build/install-test
prefix=$test/prefix
rm -rf "$prefix"
cmake --install "$build" --prefix "$prefix" >/dev/null

# build_project SOURCES BUILD_DIR [-DNAME=VALUE…]
build_project() {
  local sources=$1 target=$2
  shift 2
  cmake -S "$sources" -B "$target" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="${sanitizers:+-fsanitize=$sanitizers}" "$@"
  cmake --build "$target"
}

build_project "$here/consumer" "$test/consumer" -DWITH_CLIENT="$with_client"
"$test/consumer/consumer"
[[ $with_client == ON ]] || exit 0

build_project "$here/../../client/examples/cpp_library" "$test/attend"
rm -f "$test/ports"
"$build/bin/attendant-server" --port 0 --http-port 0 --port-file "$test/ports" &
trap 'kill %1; wait %1' EXIT
until [[ -s $test/ports ]]; do
  kill -0 %1
  sleep 0.1
done
source "$test/ports"  # grpc_port=…
[[ $("$test/attend/attend" "localhost:$grpc_port" | wc -l) == 3 ]]  # the context layer of three tokens
