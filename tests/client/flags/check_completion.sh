#!/bin/bash
# check_completion.sh CLIENT SERVER: completes command lines by the scripts that the two programs print.
set -uo pipefail
client=$("$1" completion bash) && server=$("$2" --completion bash) || exit 1
source /dev/stdin <<<"$client" && source /dev/stdin <<<"$server" || exit 1
scratch=$(mktemp -d) && trap 'rm -r "$scratch"' EXIT && cd "$scratch" || exit 1
mkdir folder && touch "a tensor.npy" b.npy folder/c.npy

failures=0
# expect CANDIDATES WORD...: what completes the last of the words. CANDIDATES are separated by |. Bash takes = for a word.
expect() {
  local wanted=$1 found
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  "$(complete -p "$1" | sed -E 's/.* -F ([^ ]+) .*/\1/')"
  found=$(printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd '|')
  [[ $found == "$wanted" ]] && return
  echo "$*: expected $wanted; got $found"
  failures=$((failures + 1))
}

expect 'encode' attendant-client enc
expect 'load-report|load-test' attendant-client load
expect 'drop-memory' attendant-client --json --address localhost : 8001 drop
expect '--tls-ca|--tls-cert|--tls-key' attendant-client --tls
expect '--tls-ca|--tls-cert|--tls-key' attendant-client attend --tls
expect '--memory|--memory-handle|--memory-lengths|--memory-mask|--memory-values' attendant-client attend --mem
expect '' attendant-client models --mem
expect 'block|context|projected' attendant-client attend --stage ''
expect 'projected' attendant-client attend --json --stage = p
expect 'block|context|projected' attendant-client attend --stage =
expect 'mean|mean-sqrt-len' attendant-client encode --pooled mean
expect '--normalize|--normalize-tokens' attendant-client encode --pooled --norm
expect '' attendant-client attend --layer ''
expect 'a tensor.npy|b.npy|folder' attendant-client attend --input ''
expect 'folder/c.npy' attendant-client attend --input = folder/
expect 'b.npy' attendant-client attend --mask b
expect 'b.npy' attendant-client --tls-ca b
expect 'a tensor.npy|b.npy|folder' attendant-client load-report ''
expect '--html' attendant-client load-report b.npy --ht
expect 'bash' attendant-client completion ''
expect '--names' attendant-client models --na

expect '--log-format|--log-level' attendant-server --log
expect 'json|text' attendant-server --log-format ''
expect 'json' attendant-server --page off --log-format = j
expect 'b.npy' attendant-server --tls-cert b
expect 'folder' attendant-server --model name = fol
expect 'a tensor.npy|b.npy|folder' attendant-server --model name =
expect 'bash' attendant-server --completion ''
expect '--describe' attendant-server --json --des
exit $((failures > 0))
