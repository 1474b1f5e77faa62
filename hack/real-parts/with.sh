#!/usr/bin/env bash
# Runs a command with real parts of its own, ends them afterwards whatever happens, and returns the command's status:
#
#   hack/real-parts/with.sh kubernetes postgresql chromium -- cargo test --locked --workspace
#
# What the command finds in its environment:
#
#   kubernetes   REAL_KUBECONFIG, REAL_KUBECTL and REAL_AUDIT_LOG; see kubernetes.sh
#   postgresql   REAL_POSTGRESQL_URL, _RUN, _SCRIPT and _NAME; see postgresql.sh
#   rabbitmq     REAL_RABBITMQ_URL, _CTL, _RUN, _SCRIPT and _NAME; see rabbitmq.sh
#   openbao      REAL_OPENBAO_ADDR, _TLS_ADDR, _CA, _TOKEN_FILE, _CLI, _RUN, _SCRIPT and _NAME; see openbao.sh
#   moto         REAL_MOTO_ADDR, _RUN, _SCRIPT and _NAME; see moto.sh
#   pubsub       REAL_PUBSUB_HOST, _RUN, _SCRIPT and _NAME, or REAL_PUBSUB_ABSENT; see pubsub.sh
#   systemd      REAL_SYSTEMD_SCRIPT, with which each test starts a node of its own, and more; needs root; see systemd.sh
#   node         REAL_NODE_KUBECONFIG and more, a complete node with its cluster and registry, or REAL_NODE_ABSENT; needs
#                root; see node.sh
#   chromium     REAL_CHROMIUM; see chromium.sh
#   schemathesis REAL_SCHEMATHESIS; see schemathesis.sh
#   registry     REAL_REGISTRY, REAL_SKOPEO and REAL_SKOPEO_LIBRARIES; see registry.sh
#   helm, crds   REAL_HELM, REAL_CRDS; see tools.sh
#   promtool     REAL_PROMTOOL; see tools.sh
#   opentelemetry-collector  REAL_OPENTELEMETRY_COLLECTOR; see tools.sh
#   oauth2-proxy  REAL_OAUTH2_PROXY; see tools.sh
set -euo pipefail

here=$(dirname "$0")
name=with-$$-$RANDOM
signal=

usage() {
  echo "usage: with.sh PART… -- COMMAND…    where PART is kubernetes, postgresql, rabbitmq, openbao, moto, pubsub, systemd, node, chromium, schemathesis, registry, helm, crds, promtool, opentelemetry-collector or oauth2-proxy" >&2
  exit 2
}

parts=()
while [[ ${1:-} != -- ]]; do
  case ${1:-} in
    kubernetes | postgresql | rabbitmq | openbao | moto | pubsub | systemd | node | chromium | schemathesis | registry | helm | crds | promtool | opentelemetry-collector | oauth2-proxy) parts+=("$1") ;;
    *) usage ;;
  esac
  shift
done
shift
((${#parts[@]} && $#)) || usage

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

# end: what has begun, last first; a second signal does not keep it from ending all.
end() {
  trap '' INT TERM HUP
  local index
  for ((index = ${#begun[@]} - 1; index >= 0; index--)); do "$here/${begun[index]}.sh" down "$name" || true; done
  rm -f "$exports"
}

begun=()
exports=$(mktemp)
trap end EXIT
for part in "${parts[@]}"; do
  if [[ $part =~ ^(chromium|schemathesis|registry)$ ]]; then # only got: whoever needs one starts it
    supervise "$here/$part.sh" get >>"$exports"
  elif [[ $part =~ ^(helm|crds|promtool|opentelemetry-collector|oauth2-proxy)$ ]]; then
    supervise "$here/tools.sh" get "$part" >>"$exports"
  else
    begun+=("$part")
    supervise "$here/$part.sh" up "$name" >>"$exports"
  fi
  [[ -z $signal ]] || exit 143
done
# shellcheck disable=SC1090 # written just now
. "$exports"
supervise "$@"
