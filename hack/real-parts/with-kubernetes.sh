#!/usr/bin/env bash
# Runs a command with a Kubernetes control plane of its own, ends that afterwards, and returns the command's status:
#
#   hack/real-parts/with-kubernetes.sh cargo test --locked --package emulators
#
# The command finds REAL_KUBECONFIG and REAL_KUBECTL in its environment; see kubernetes.sh.
set -euo pipefail

(($#)) || { echo "usage: with-kubernetes.sh COMMAND…" >&2; exit 2; }
kubernetes=$(dirname "$0")/kubernetes.sh
name=with-$$
signal=

# supervise COMMAND…: runs it, hands signals on to it, and returns its status. Bash acts on a signal only between
# foreground commands, so it runs in the background, where it would ignore SIGINT unless told otherwise.
supervise() {
  local command before status
  (trap - INT QUIT && exec "$@") <&0 &
  command=$!
  for signal in INT TERM HUP; do
    # shellcheck disable=SC2064 # expanded now
    trap "signal=$signal; kill -s $signal $command 2>/dev/null || true" "$signal"
  done
  signal=
  while true; do
    before=$signal status=0
    wait "$command" || status=$?
    [[ $signal != "$before" ]] || return "$status" # else a signal has ended the waiting, not the command
  done
}

exports=$(mktemp)
trap '"$kubernetes" down "$name"; rm -f "$exports"' EXIT
supervise "$kubernetes" up "$name" >"$exports"
[[ -z $signal ]] || exit 143
# shellcheck disable=SC1090 # written just now
. "$exports"
supervise "$@"
