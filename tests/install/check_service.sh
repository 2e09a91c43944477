#!/usr/bin/env bash
# check_service.sh BUILD_DIR: installs the programs, judges the unit, and starts the server as the unit does.
set -euo pipefail
build=$1
prefix=$build/service-test/prefix
rm -rf "$build/service-test"
install_programs() { cmake --install "$build" --prefix "$@" --component programs; }
install_programs "$prefix" >/dev/null
unit=$prefix/lib/systemd/system/attendant.service settings=$prefix/etc/attendant/attendant.conf

systemd-analyze verify "$unit"
for program in attendant-client attendant-server; do
  completion=$prefix/share/bash-completion/completions/$program
  bash -c 'source "$1"; complete -p "$2"' bash "$completion" "$program"
done
# In tenths; from 0, nothing is left to take away, to 100.
systemd-analyze security --offline=true --threshold=20 --no-pager "$unit" | tail -n 1

help=$("$prefix/bin/attendant-server" --help)
grep -oP '^#?\K[a-z-]+(?= = )' "$settings" | sort -u | while read -r name; do
  grep -qe "^  --$name " <<<"$help" || { echo "$settings: no setting $name"; exit 1; }
done

# Where the service may write is where it keeps models of the Hub.
grep -qx CacheDirectory=attendant "$unit" && grep -qx "model-cache = /var/cache/attendant" "$settings"

# A start that fails, for example because the Hub is unreachable, is tried again until it succeeds. A stop while models are
# loaded is not a failure.
for line in Restart=on-failure RestartSec=3 SuccessExitStatus=143; do grep -qx "$line" "$unit"; done
if grep -q RestartPreventExitStatus "$unit"; then echo "$unit: a failed start is final"; exit 1; fi

ports=$build/service-test/ports
command=$(sed -n 's/^ExecStart=//p' "$unit")
[[ $command == "$prefix/bin/attendant-server --config $settings" ]] || { echo "unexpected: $command"; exit 1; }
$command --port 0 --http-port 0 --port-file "$ports" 2>"$build/service-test/log" &
server=$!
trap 'kill "$server"; cat "$build/service-test/log"' EXIT
until [[ -s $ports ]]; do kill -0 "$server"; done
source "$ports"  # grpc_port=… http_port=…
"$prefix/bin/attendant-client" health --address "localhost:$grpc_port"
trap - EXIT
kill "$server"
wait "$server"

echo "port = 9001" >"$settings"
install_programs "$prefix" >/dev/null
[[ $(cat "$settings") == "port = 9001" ]] || { echo "a second installation replaced the settings"; exit 1; }

stage=$build/service-test/stage
DESTDIR=$stage install_programs /usr >/dev/null
grep -qx "ExecStart=/usr/bin/attendant-server --config /etc/attendant/attendant.conf" \
  "$stage/usr/lib/systemd/system/attendant.service"
[[ -x $stage/usr/bin/attendant-server && -f $stage/etc/attendant/attendant.conf ]]
