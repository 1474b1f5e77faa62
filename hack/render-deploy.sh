#!/usr/bin/env bash
# Renders the manifests of deploy/ from the charts, into FOLDER or deploy/ itself:
#
#   hack/render-deploy.sh [FOLDER]
#
#   REAL_HELM   the helm that renders; without it, the one of hack/real-parts/tools.sh
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(realpath -m "${1:-$root/deploy}")
[[ -n ${REAL_HELM:-} ]] || {
  export=$("$root/hack/real-parts/tools.sh" get helm)
  eval "$export"
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# render CHART RELEASE NAMESPACE OPTION…: sets `rendered` to the folder with a file for each template.
render() {
  local chart=$1
  "$REAL_HELM" template "$2" "$root/charts/$chart" --namespace "$3" --output-dir "$scratch" "${@:4}" >/dev/null
  rendered=$scratch/$chart/templates
}

# put FILE TARGET: without what helm adds, and blank lines.
put() {
  mkdir -p "$(dirname "$2")"
  {
    echo "# Rendered by \`make deploy\`; change the chart instead."
    sed -E -e 1d -e '/^# Source: /d' -e 's/[[:space:]]+$//' "$1" | sed '/^$/d'
  } >"$2"
}

render pull-secret hyperfleet hyperfleet-system --values "$root/deploy/values.yaml"
for file in "$rendered"/*.yaml; do put "$file" "$folder/$(basename "$file")"; done
render global-pull-secret global-pull-secret clusters-example
put "$rendered/control-plane.yaml" "$folder/global-pull-secret/control-plane.yaml"
render global-pull-secret global-pull-secret kube-system --set part=hosted-cluster
put "$rendered/hosted-cluster.yaml" "$folder/global-pull-secret/hosted-cluster.yaml"
