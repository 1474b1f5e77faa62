#!/usr/bin/env bash
# Gets, starts and ends a real Kubernetes control plane, throw-away and on loopback: etcd, kube-apiserver with RBAC and
# kube-controller-manager. There is no node, so no Pod runs: whoever needs one to end patches its status, or takes node.sh.
#
#   kubernetes.sh get           makes sure that the binaries are there; builds them once with Go, which takes some minutes
#   kubernetes.sh get-node      the same, with kubelet and kube-scheduler; prints the folder they are in
#   kubernetes.sh up [NAME]     starts an instance and prints export lines for REAL_KUBECONFIG, REAL_KUBECTL and REAL_AUDIT_LOG,
#                               the requests of ServiceAccounts: e=$(hack/real-parts/kubernetes.sh up) && eval "$e"
#   kubernetes.sh down [NAME]   ends it and removes its data
#
# Running any of them again is harmless; an instance of which a process has died is replaced by a new, empty one.
#
#   REAL_KUBECONFIG      an existing cluster's kubeconfig: `up` starts nothing and prints just that
#   KUBERNETES_VERSION   another release of Kubernetes than the newest that is supported, such as 1.34.4
#   KUBEBUILDER_ASSETS   a folder with kube-apiserver, etcd and kubectl: used instead of building them; without a
#                        kube-controller-manager in it, Jobs make no Pods and namespaces get no ServiceAccount
#   REAL_PARTS_DIR       where binaries and instances live instead of ~/.cache/pull-secret/real-parts
part=kubernetes
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

version=${KUBERNETES_VERSION:-1.37.2}
etcd_version=3.7.3
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

# build COMMAND…: of Kubernetes, and etcd unless it is there.
build() {
  local stamp=k8s.io/component-base/version command packages=()
  [[ $version =~ ^1\.[0-9]+\.[0-9]+$ ]] || fail "KUBERNETES_VERSION=$version should be a release such as 1.37.2"
  for command; do packages+=("k8s.io/kubernetes/cmd/$command"); done
  begin_go 4000000
  go_build "$built" k8s.io/kubernetes "v$version" \
    "-X $stamp.gitVersion=v$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$(cut -d . -f 2 <<<"$version")" "${packages[@]}"
  has "$built" etcd || {
    go_build "$built" go.etcd.io/etcd/server/v3 "v$etcd_version" '' go.etcd.io/etcd/server/v3
    mv "$built/server" "$built/etcd"
  }
  end_go
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
  local began=${EPOCHREALTIME/[.,]/} port client peer token
  umask 077
  read -r port client peer <<<"$(free_ports 3)"
  client=http://127.0.0.1:$client peer=http://127.0.0.1:$peer

  start etcd "$bin/etcd" --data-dir "$run/etcd" --initial-cluster "default=$peer" \
    --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer"

  # A loopback address is refused as the endpoint of the Service `kubernetes`, so nothing is published there.
  # The key that the server makes for its own certificate serves for ServiceAccount tokens as well: no openssl needed.
  token=$(od -An -N 16 -tx1 /dev/urandom | tr -d ' \n')
  echo "$token,admin,admin,\"system:masters\"" >"$run/tokens.csv"
  local certificates=$run/certificates admission=(--enable-admission-plugins NodeRestriction)
  # With it tests prove that a ServiceAccount uses each of its rights.
  cat >"$run/audit.yaml" <<'END'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts"]}
- {level: None}
END
  has "$bin" kube-controller-manager || admission+=(--disable-admission-plugins ServiceAccount)
  start kube-apiserver "$bin/kube-apiserver" --etcd-servers "$client" --cert-dir "$certificates" \
    --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$port" \
    --token-auth-file "$run/tokens.csv" --authorization-mode RBAC --allow-privileged "${admission[@]}" \
    --service-cluster-ip-range 10.96.0.0/16 --api-audiences https://kubernetes.default.svc \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$certificates/apiserver.key" \
    --service-account-signing-key-file "$certificates/apiserver.key" --endpoint-reconciler-type none \
    --audit-policy-file "$run/audit.yaml" --audit-log-path "$run/audit.log"

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

  # Without node-lifecycle-controller, which would evict Pods from Node objects that a test makes by hand.
  local controllers=job-controller,daemonset-controller,deployment-controller,replicaset-controller
  controllers+=,garbage-collector-controller,namespace-controller,ttl-after-finished-controller
  controllers+=,serviceaccount-controller,root-ca-certificate-publisher-controller,clusterrole-aggregation-controller
  if has "$bin" kube-controller-manager; then
    start kube-controller-manager "$bin/kube-controller-manager" --kubeconfig "$run/kubeconfig" --leader-elect=false \
      --secure-port 0 --service-account-private-key-file "$certificates/apiserver.key" \
      --root-ca-file "$run/ca.crt" --controllers "$controllers"
  else
    say "$bin has no kube-controller-manager: Jobs make no Pods, namespaces get no ServiceAccount"
  fi
  await "ServiceAccount in the default namespace" takes_pods

  printf 'export %s=%q\n' REAL_KUBECONFIG "$run/kubeconfig" REAL_KUBECTL "$bin/kubectl" REAL_AUDIT_LOG "$run/audit.log" \
    >"$run/exports.new"
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
