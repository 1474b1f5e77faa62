#!/usr/bin/env bash
# Gets tools that check what is deployed or stand beside it, and prints an export line for each that is named:
#
#   e=$(hack/real-parts/tools.sh get helm promtool) && eval "$e"
#
#   helm                     REAL_HELM: renders and lints charts
#   promtool                 REAL_PROMTOOL: checks and tests Prometheus rules; Debian's, as the current one's modules cannot be had
#   opentelemetry-collector  REAL_OPENTELEMETRY_COLLECTOR: takes OTLP over gRPC and HTTP, and writes it to a file or its log
#   oauth2-proxy             REAL_OAUTH2_PROXY: signs people in at an OIDC issuer, in front of the API's page
#   crds                     REAL_CRDS: a folder with the custom resources of cert-manager, of the Prometheus operator, and OpenShift's Route
#
# What is there already is not got again.
#
#   REAL_PARTS_DIR           where they live instead of ~/.cache/pull-secret/real-parts
part=tools
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

helm_version=4.3.1
collector_version=0.162.0
oauth2_proxy_version=7.15.6
cert_manager_version=1.21.2
prometheus_operator_version=0.85.0
openshift_version=0.0.0-20250602203052-b29811a290c7 # it has no releases

# locate TOOL: sets `tool` to its path, and `get` to the function that gets it.
locate() {
  case $1 in
    helm) tool=$real_parts/helm-$helm_version/helm get=get_helm ;;
    crds) tool=$real_parts/crds-$cert_manager_version-$prometheus_operator_version-${openshift_version##*-} get=get_crds ;;
    promtool) tool=$real_parts/prometheus-debian-12/usr/bin/promtool get=get_promtool ;;
    opentelemetry-collector)
      tool=$real_parts/opentelemetry-collector-$collector_version/opentelemetry-collector get=get_collector
      ;;
    oauth2-proxy) tool=$real_parts/oauth2-proxy-$oauth2_proxy_version/oauth2-proxy get=get_oauth2_proxy ;;
    *) fail "the tools are helm, promtool, opentelemetry-collector, oauth2-proxy and crds, not $1" ;;
  esac
}

get_helm() {
  begin_go 3000000
  go_build "$(dirname "$tool")" helm.sh/helm/v4 "v$helm_version" "-X helm.sh/helm/v4/internal/version.version=v$helm_version" helm.sh/helm/v4/cmd/helm
  end_go
}

get_oauth2_proxy() {
  local module=github.com/oauth2-proxy/oauth2-proxy/v7
  begin_go 2000000
  go_build "$(dirname "$tool")" $module "v$oauth2_proxy_version" '' $module
  end_go
}

# The projects have them in their modules.
get_crds() {
  local module source
  begin_go 500000
  mkdir "$go_scratch/crds"
  for module in github.com/cert-manager/cert-manager@v$cert_manager_version \
    github.com/prometheus-operator/prometheus-operator@v$prometheus_operator_version github.com/openshift/api@v$openshift_version; do
    say "getting $module, once; details in $log"
    (cd "$go_scratch" && step go mod download "$module")
    source=$(cd "$go_scratch" && go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    cp "$source"/{deploy/crds,example/prometheus-operator-crd,route/v1/zz_generated.crd-manifests}/*.yaml "$go_scratch/crds" 2>/dev/null || true
  done
  for source in cert-manager.io_certificates monitoring.coreos.com_prometheusrules routes.crd; do
    [[ -s $go_scratch/crds/$source.yaml ]] || fail "$source.yaml is not where it was in these modules"
  done
  chmod -R u+w "$go_scratch/crds"
  rm -rf "$tool"
  mv "$go_scratch/crds" "$tool"
  end_go
}

# It is static, so what the package depends on for its pages and its user is left out.
get_promtool() {
  unpack_debian "$real_parts/prometheus-debian-12" "adduser libjs-bootstrap4 libjs-eonasdan-bootstrap-datetimepicker \
    libjs-jquery libjs-jquery-hotkeys libjs-moment libjs-mustache libjs-popper.js libjs-rickshaw node-mustache fonts-glyphicons-halflings \
    init-system-helpers tzdata pkg-config prometheus-node-exporter" prometheus
}

# A collector is what its builder writes for the components that are named here. The builder would also get what the
# components' own tests need, so Go is called without it.
get_collector() {
  local module=go.opentelemetry.io/collector version=v$collector_version stable file
  stable=v1.$(($(cut -d . -f 2 <<<"$collector_version") - 94)).0 # of its stable modules, which are released together
  file=github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter
  begin_go 3000000
  go_build "$go_scratch/builder" $module/cmd/builder "$version" '' $module/cmd/builder
  cat >"$go_scratch/manifest.yaml" <<END
dist: {name: opentelemetry-collector, output_path: $go_scratch/collector}
receivers: [{gomod: $module/receiver/otlpreceiver $version}]
exporters: [{gomod: $module/exporter/debugexporter $version}, {gomod: $file $version}]
providers:
- {gomod: $module/confmap/provider/envprovider $stable}
- {gomod: $module/confmap/provider/fileprovider $stable}
END
  say "compiling opentelemetry-collector"
  step "$go_scratch/builder/builder" --skip-get-modules --skip-compilation --config "$go_scratch/manifest.yaml"
  cd "$go_scratch/collector"
  step go mod init collector
  step go get $module/{otelcol,service,receiver/otlpreceiver,exporter/debugexporter}@"$version" "$file@$version" \
    $module/confmap/provider/{env,file}provider@"$stable"
  GOFLAGS=-mod=mod CGO_ENABLED=0 step nice go build -trimpath -ldflags '-s -w' -o opentelemetry-collector .
  mkdir -p "$(dirname "$tool")"
  mv opentelemetry-collector "$tool"
  cd /
  end_go
}

need flock
[[ ${1:-} == get && $# -ge 2 ]] || fail "usage: tools.sh get TOOL…, where TOOL is helm, promtool, opentelemetry-collector, oauth2-proxy or crds"
shift
for name; do locate "$name"; done # all names are known before anything is got
for name; do
  locate "$name"
  variable=${name^^}
  lock "$real_parts/tools-get.lock" "another run is getting tools; waiting for it"
  [[ -x $tool ]] || "$get"
  unlock
  printf 'export REAL_%s=%q\n' "${variable//-/_}" "$tool"
done
