# Installs what tests/bench/run --servers needs, into build/servers; to be sourced. What cannot be had leaves its reason in
# `errors`, and a row of the report says it.

# servers_attempt NAME COMMAND…
servers_attempt() {
  local name=$1
  shift
  if "$@" >"$servers/errors/$name.log" 2>&1; then
    rm -f "$servers/errors/$name.log"
  else
    say "cannot install $name: $(tail -n 1 "$servers/errors/$name.log")"
    return 1
  fi
}

# servers_environment NAME [ARGUMENT…]: a virtual environment with what environments/NAME.txt lists; the arguments are pip's.
servers_environment() {
  local name=$1 list=$here/servers/environments/$1.txt venv=$servers/venvs/$1
  shift
  ! cmp -s "$list" "$venv/installed.txt" || return 0
  say "Installing into $venv"
  rm -rf "$venv"
  servers_attempt "$name" /usr/bin/python3 -m venv "$venv" || return 0
  servers_attempt "$name" "$venv/bin/pip" install -q -r "$list" "$@" || return 0
  cp "$list" "$venv/installed.txt"
}

set_up_servers() {
  local name
  mkdir -p "$servers"/{venvs,errors}
  for name in caller floor infinity triton mlserver; do servers_environment "$name"; done
  checkpoint=$("$here/../families/get_checkpoints") || fail "cannot get the real MiniLM"
  if [[ ! -e $servers/exported && ! -e $servers/errors/floor.log ]]; then
    say "Exporting the model to ONNX"
    PYTHONPATH=$here/peers HF_HUB_OFFLINE=1 servers_attempt export "$servers/venvs/floor/bin/python" \
      "$here/servers/export_onnx.py" "$checkpoint" "$servers/exported" || true
  fi
}
