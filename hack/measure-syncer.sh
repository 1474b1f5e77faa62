#!/usr/bin/env bash
# Measures the node syncer at rest, as it is shipped: memory, threads, CPU. Prints one line a source.
#
#   hack/measure-syncer.sh [SECONDS]     how long it rests; 60 unless told
#
# From files it reads a folder as the kubelet mounts it. From the API it watches REAL_KUBECONFIG's server, if there is one:
#   hack/real-parts/with.sh kubernetes -- hack/measure-syncer.sh
set -euo pipefail

seconds=${1:-60}
cd "$(dirname "$0")/.."
cargo build --quiet --locked --profile node --package sync-global-pullsecret
binary=${CARGO_TARGET_DIR:-target}/node/sync-global-pullsecret
scratch=$(mktemp -d)
syncer=
trap '[[ -z $syncer ]] || kill "$syncer" 2>/dev/null || true; rm -rf "$scratch"' EXIT
document='{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}'

cpu() { cut -d ' ' -f 1 "/proc/$syncer/schedstat"; } # nanoseconds, of the one thread that there is

# measure NAME FLAG…
measure() {
  local name=$1 before field
  shift
  mkdir -p "$scratch/$name"
  "$binary" --restart-policy never --kubelet-file "$scratch/$name/config.json" "$@" >"$scratch/$name.log" &
  syncer=$!
  until "$binary" ready --kubelet-file "$scratch/$name/config.json" >/dev/null; do
    kill -0 "$syncer" || { cat "$scratch/$name.log" && exit 1; }
    sleep 0.1
  done
  before=$(cpu)
  sleep "$seconds"
  printf '%-6s' "$name"
  for field in VmRSS RssAnon RssFile VmHWM; do
    awk -v field="$field:" '$1 == field { printf "  %s %.2f MiB", field, $2 / 1024 }' "/proc/$syncer/status"
  done
  printf '  threads %d  CPU %d us in %d s\n' "$(awk '/^Threads/ { print $2 }' "/proc/$syncer/status")" \
    $((($(cpu) - before) / 1000)) "$seconds"
  kill "$syncer"
  wait "$syncer"
  syncer=
}

mkdir -p "$scratch/mounted/global"
echo "$document" >"$scratch/mounted/global/.dockerconfigjson"
measure files --from-files "$scratch/mounted"

if [[ -n ${REAL_KUBECONFIG:-} ]]; then
  kubectl=("${REAL_KUBECTL:-kubectl}" --kubeconfig "$REAL_KUBECONFIG")
  field() { "${kubectl[@]}" config view --raw --minify --output "jsonpath={.$1}"; }
  field 'clusters[0].cluster.certificate-authority-data' | base64 --decode >"$scratch/ca.crt"
  [[ -s $scratch/ca.crt ]] || cp "$(field 'clusters[0].cluster.certificate-authority')" "$scratch/ca.crt"
  field 'users[0].user.token' >"$scratch/token"
  "${kubectl[@]}" --namespace kube-system create secret generic measured --type kubernetes.io/dockerconfigjson \
    --from-literal ".dockerconfigjson=$document" >/dev/null
  measure api --secret kube-system/measured --api-server "$(field 'clusters[0].cluster.server')" \
    --api-authority "$scratch/ca.crt" --api-token "$scratch/token"
  "${kubectl[@]}" --namespace kube-system delete secret measured >/dev/null
fi
