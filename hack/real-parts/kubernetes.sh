#!/usr/bin/env bash
# Gets, starts and ends a real Kubernetes control plane, throw-away and on loopback: etcd, kube-apiserver with RBAC and
# kube-controller-manager. There is no node, so no Pod runs: whoever needs one to end patches its status, or takes node.sh.
#
#   kubernetes.sh get           makes sure that the binaries are there; builds them once, which takes some minutes
#   kubernetes.sh get-node      the same, with kubelet and kube-scheduler; prints the folder they are in
#   kubernetes.sh up [NAME]     starts an instance and prints export lines for REAL_KUBECONFIG and REAL_KUBECTL:
#                               e=$(hack/real-parts/kubernetes.sh up) && eval "$e"
#   kubernetes.sh down [NAME]   ends it and removes its data
#
# Running any of them again is harmless; an instance of which a process has died is replaced by a new, empty one.
#
#   REAL_KUBECONFIG      an existing cluster's kubeconfig: `up` starts nothing and prints just that
#   KUBEBUILDER_ASSETS   a folder with kube-apiserver, etcd and kubectl: used instead of building them; without a
#                        kube-controller-manager in it, Jobs make no Pods and namespaces get no ServiceAccount
#   REAL_PARTS_DIR       where binaries and instances live instead of ~/.cache/pull-secret/real-parts
part=kubernetes
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

version=1.20.2 # what Debian 12 has the source of; end of life, so newer fields and conditions cannot be tried on it
built=$real_parts/kubernetes-$version
commands=(kube-apiserver kube-controller-manager kubectl)
node_commands=(kubelet kube-scheduler)

has() { # FOLDER COMMAND…
  local folder=$1 command
  shift
  for command; do [[ -x $folder/$command ]] || return 1; done
}

# --- get ---

# get: sets `bin` to the folder with the binaries.
get() {
  if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
    bin=$(realpath -m "$KUBEBUILDER_ASSETS")
    has "$bin" kube-apiserver etcd kubectl && return
    say "KUBEBUILDER_ASSETS is not used: $bin lacks kube-apiserver, etcd or kubectl"
  fi
  bin=$built
  has "$bin" "${commands[@]}" etcd && return
  lock "$real_parts/kubernetes-get.lock" "another run is getting the binaries; waiting for it"
  if ! has "$bin" "${commands[@]}" etcd; then build "${commands[@]}" "${node_commands[@]}"; fi
  unlock
}

# get_node: sets `bin` to the folder with the binaries of control plane and node. An older build may lack the node's.
get_node() {
  unset KUBEBUILDER_ASSETS # has none of a node's
  get
  has "$bin" "${node_commands[@]}" && return
  lock "$real_parts/kubernetes-get.lock" "another run is getting the binaries; waiting for it"
  if ! has "$bin" "${node_commands[@]}"; then build "${node_commands[@]}"; fi
  unlock
}

# build COMMAND…: nothing is installed and root is not needed. Debian's packages are downloaded and unpacked beside the build:
# Go finds its own parts by GOROOT, and what is built with it, like etcd, needs nothing but libc.
build() {
  local began=$SECONDS scratch source tool package flags module
  log=$real_parts/kubernetes-get.log
  for tool in apt-get apt-config dpkg-deb; do
    type -P $tool >/dev/null || fail "$tool is missing, as this builds from Debian 12's packages; elsewhere, set" \
      "KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl, or REAL_KUBECONFIG to a cluster"
  done
  rm -rf "$real_parts"/kubernetes-build.* # left behind by a run that was killed
  (($(df --output=avail -k "$real_parts" | tail -n 1) > 3000000)) || fail "building takes 3 GB free in $real_parts"
  scratch=$(mktemp -d "$real_parts/kubernetes-build.XXXXXX")
  # shellcheck disable=SC2064 # expanded now: the trap outlives this function
  trap "end_step; rm -rf '$scratch' || { sleep 1; rm -rf '$scratch'; }" EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  : >"$log"

  say "building Kubernetes $version from Debian's source package, once; details in $log"
  private_apt "$scratch/apt" deb deb-src
  step apt-get --quiet --error-on=any update
  cd "$scratch/apt"
  step apt-get --quiet source --download-only kubernetes
  step apt-get --quiet download golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev etcd-server
  unset APT_CONFIG

  say "unpacking source, Go and etcd"
  source=$scratch/go/src/k8s.io/kubernetes
  mkdir -p "$scratch"/{bin,tmp,debian} "$source"
  step tar -xzf kubernetes_*"really$version.orig.tar.gz" --strip-components 1 -C "$source"
  for package in *.deb; do step dpkg-deb --extract "$package" "$scratch/debian"; done
  # The release's own reflect2 1.0.1 panics under Go >= 1.18 as soon as JSON is read.
  rm -r "$source/vendor/github.com/modern-go/reflect2"
  cp -r "$scratch/debian/usr/share/gocode/src/github.com/modern-go/reflect2" "$source/vendor/github.com/modern-go/"

  # GOPATH mode, as Go 1.19 finds fault with the release's go.mod.
  export GOROOT=$scratch/debian/usr/lib/go-1.19 GOPATH=$scratch/go GOCACHE=$scratch/cache GOTMPDIR=$scratch/tmp
  export GO111MODULE=off GOENV=off GOFLAGS='' CGO_ENABLED=0
  cd "$source"
  if [[ " $* " == *' kube-apiserver '* ]]; then
    say "generating the OpenAPI definitions, which the source package leaves out"
    generate_openapi "$scratch/bin/openapi-gen"
    rm "$scratch/bin/openapi-gen"
  fi

  say "compiling $*"
  flags='-s -w'
  for module in component-base/version client-go/pkg/version; do # else it calls itself v0.0.0
    module=k8s.io/kubernetes/vendor/k8s.io/$module
    flags+=" -X $module.gitVersion=v$version -X $module.gitMajor=1 -X $module.gitMinor=20"
  done
  # The tags are upstream's own and leave the clouds and Docker out: half the size.
  step nice "$GOROOT/bin/go" build -tags providerless,dockerless -trimpath -ldflags "$flags" -o "$scratch/bin/" \
    "${@/#/k8s.io/kubernetes/cmd/}"
  cp "$scratch/debian/usr/bin/etcd" "$scratch/bin/"

  # One at a time, each complete at once: an instance may be running what is there.
  mkdir -p "$built"
  for tool in "$scratch"/bin/*; do mv -f "$tool" "$built/"; done
  say "built in $((SECONDS - began)) s: $built"
  cd /
  rm -rf "$scratch"
  trap - EXIT INT TERM HUP
}

# generate_openapi TOOL: what `make gen_openapi` does for kube-apiserver, without make and the rsync that it wants.
# The packages that ask for it do so in a comment.
generate_openapi() {
  local packages
  step nice "$GOROOT/bin/go" build -o "$1" k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen
  packages=$(grep -RlE --include '*.go' --exclude-dir code-generator --exclude-dir sample-apiserver \
    '^// *\+k8s:openapi-gen=' pkg vendor/k8s.io |
    xargs -n 1 dirname | sort -u | sed 's,^,k8s.io/kubernetes/,' | paste -sd ,)
  step "$1" --logtostderr --input-dirs "$packages" --output-base "$GOPATH/src" \
    --output-package k8s.io/kubernetes/pkg/generated/openapi --output-file-base zz_generated.openapi \
    --go-header-file vendor/k8s.io/code-generator/hack/boilerplate.go.txt --report-filename "$GOTMPDIR/violations"
}

# --- up ---

kubectl() { "$bin/kubectl" --kubeconfig "$run/kubeconfig" --cache-dir "$run/kubectl" "$@"; }

# What a test needs of the controllers: until the namespace's ServiceAccount is complete, its Pods are refused.
takes_pods() { kubectl --namespace default run probe --image none --dry-run=server; }

up() {
  # One that an earlier `up` exported is no existing cluster: it may have ended since.
  if [[ -n ${REAL_KUBECONFIG:-} && $(realpath -m "$REAL_KUBECONFIG") != "$real_parts"/run/* ]]; then
    [[ -r $REAL_KUBECONFIG ]] || fail "REAL_KUBECONFIG=$REAL_KUBECONFIG cannot be read"
    printf 'export REAL_KUBECONFIG=%q\n' "$REAL_KUBECONFIG"
    return
  fi
  get
  lock_instance
  if ! is_up; then
    kill_all
    rm -rf "$run"
    (umask 077 && mkdir "$run")
    trap 'kill_all; rm -rf "$run/etcd"; say "not started; logs are in $run"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    start_all
    trap - EXIT INT TERM HUP
  fi
  cat "$run/exports"
}

is_up() {
  local file
  [[ -e $run/exports ]] || return 1 # written last
  for file in "$run"/*.pid; do alive "$file" || return 1; done
}

start_all() {
  local began=${EPOCHREALTIME/[.,]/} port client peer token old=() quiet=()
  umask 077
  read -r port client peer <<<"$(free_ports 3)"
  client=http://127.0.0.1:$client peer=http://127.0.0.1:$peer
  case $("$bin/kube-apiserver" --version) in
    *v1.20.*) # later on this is the default, and still later no flag at all
      old=(--feature-gates TTLAfterFinished=true)
      quiet=(--port 0)
      ;;
  esac

  start etcd "$bin/etcd" --data-dir "$run/etcd" --initial-cluster "default=$peer" \
    --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer"

  # The key that the server makes for its own certificate serves for ServiceAccount tokens as well: no openssl needed.
  token=$(od -An -N 16 -tx1 /dev/urandom | tr -d ' \n')
  echo "$token,admin,admin,\"system:masters\"" >"$run/tokens.csv"
  local certificates=$run/certificates admission=()
  has "$bin" kube-controller-manager || admission=(--disable-admission-plugins ServiceAccount)
  start kube-apiserver "$bin/kube-apiserver" --etcd-servers "$client" --cert-dir "$certificates" \
    --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$port" \
    --token-auth-file "$run/tokens.csv" --authorization-mode RBAC --allow-privileged "${admission[@]}" "${old[@]}" \
    --service-cluster-ip-range 10.96.0.0/16 --api-audiences https://kubernetes.default.svc \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$certificates/apiserver.key" \
    --service-account-signing-key-file "$certificates/apiserver.key"

  # The server signs its certificate itself and puts the signer second into the file. That one is the root to trust:
  # OpenSSL and Go also take the first, rustls does not.
  await "server certificate" grep -q '^-----END' "$certificates/apiserver.key"
  sed '1,/^-----END/d' "$certificates/apiserver.crt" >"$run/ca.crt"
  cat >"$run/kubeconfig" <<END
apiVersion: v1
kind: Config
clusters:
- name: throw-away
  cluster:
    server: https://127.0.0.1:$port
    certificate-authority-data: $(base64 -w 0 "$run/ca.crt")
users:
- name: admin
  user: {token: "$token"}
contexts:
- name: throw-away
  context: {cluster: throw-away, user: admin}
current-context: throw-away
END
  await "ready API server" kubectl get --raw /readyz

  # Without nodelifecycle, which would evict Pods from Node objects that a test makes by hand.
  local controllers=job,daemonset,garbagecollector,namespace,serviceaccount,serviceaccount-token
  controllers+=,root-ca-cert-publisher,ttl-after-finished,clusterrole-aggregation
  if has "$bin" kube-controller-manager; then
    start kube-controller-manager "$bin/kube-controller-manager" --kubeconfig "$run/kubeconfig" --leader-elect=false \
      --secure-port 0 "${quiet[@]}" "${old[@]}" --service-account-private-key-file "$certificates/apiserver.key" \
      --root-ca-file "$run/ca.crt" --controllers "$controllers"
  else
    say "$bin has no kube-controller-manager: Jobs make no Pods, namespaces get no ServiceAccount"
  fi
  await "ServiceAccount in the default namespace" takes_pods

  printf 'export %s=%q\n' REAL_KUBECONFIG "$run/kubeconfig" REAL_KUBECTL "$bin/kubectl" >"$run/exports.new"
  mv "$run/exports.new" "$run/exports"
  local took=$(((${EPOCHREALTIME/[.,]/} - began) / 100000))
  say "'$name' is up after $((took / 10)).$((took % 10)) s at https://127.0.0.1:$port"
}

instance "${2:-}"
case ${1:-} in
  get) get ;;
  get-node) get_node && echo "$bin" ;;
  up) up ;;
  down) down ;;
  *) fail "usage: kubernetes.sh get | get-node | up [NAME] | down [NAME]" ;;
esac
