#!/usr/bin/env bash
# Usage: manual_page.sh PROGRAM VERSION
# Prints the manual page of the server or the client, made of its --help.
set -euo pipefail
program=$1 version=$2 name=$(basename "$1")
case $name in
  attendant-server) does="serves transformer encoder layers on CPUs" other=attendant-client ;;
  attendant-client) does="calls an attendant-server and measures it" other=attendant-server ;;
  *) echo "manual_page.sh: expected attendant-server or attendant-client; got $name" >&2; exit 1 ;;
esac
# Assigned by itself, so that a program that fails ends this script.
help=$("$program" --help)
# troff's own characters mean themselves, and a period that begins a line would be a request.
escape() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"; }
escaped=$(escape <<<"$name")

printf '.TH %s 1 "" "Attendant %s" "User Commands"\n' "${escaped^^}" "$version"
printf '.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n' "$escaped" "$does"
escape <<<"$help"
printf '.fi\n.SH FILES\n'
printf '.TP\n.I /etc/attendant/attendant.conf\nsettings of the service attendant.service\n'
printf '.SH SEE ALSO\n.BR %s (1),\n.I /usr/share/doc/attendant/README.Debian\n' "$(escape <<<"$other")"
