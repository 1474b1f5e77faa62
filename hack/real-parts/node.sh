#!/usr/bin/env bash
# Gets, starts and ends a complete Kubernetes node: a real systemd with containerd and kubelet as its units, on which Pods
# run; beside it, throw-away and on loopback, a control plane with a scheduler and a registry that wants a password. Needs
# root and the cgroup v1 controllers; where those are not, it cannot be had: then this says so in one line, prints
# REAL_NODE_ABSENT with the reason, and ends well.
#
#   node.sh get            makes sure that the programs are there; builds and downloads them once, which takes some minutes
#   node.sh up [NAME]      starts an instance and prints export lines:
#                          e=$(hack/real-parts/node.sh up) && eval "$e"
#                            REAL_NODE_KUBECONFIG, REAL_NODE_KUBECTL    the cluster, and a client
#                            REAL_NODE_NAME                             the Node object's name
#                            REAL_NODE_REGISTRY                         127.0.0.1:PORT, on the machine and on the node
#                            REAL_NODE_REGISTRY_USER, _PASSWORD         what it takes
#                            REAL_NODE_IMAGE, REAL_NODE_OTHER_IMAGE     a busybox each in it, which the node does not have
#                            REAL_NODE_PID, REAL_NODE_ROOT              the node's PID 1, and its root as seen from here
#                            REAL_NODE_ENTER                            runs a command in it, such as: ctr images list
#                            REAL_NODE_RUN                              the instance's folder, with logs
#                            REAL_NODE_SCRIPT, REAL_NODE_INSTANCE       this script's absolute path, and NAME
#   node.sh load NAME ARCHIVE
#                          gives the images of an archive to the node's containerd
#   node.sh forward NAME IN_NODE|OUTSIDE ADDRESS TO
#                          forwards connections to ADDRESS on the node to TO on this machine, or on this machine to the node;
#                          Pods reach the machine at 10.99.0.1, an address of the node
#   node.sh reboot [NAME]  cuts the node's power and starts it again, beside a control plane that goes on; /var/lib is kept.
#                          Prints the new export lines
#   node.sh down [NAME]    ends it and removes its data
#
# A test gives the kubelet further flags by a drop-in of its unit with Environment=KUBELET_EXTRA_ARGS=…, as kubeadm does.
# Pods reach the API server at the service's address 10.96.0.1:443, and `kubectl logs` and `exec` work. The image
# localhost/busybox:1 is on the node. Running `up` again is harmless; an instance of which a process has died is replaced.
#
#   REAL_PARTS_DIR         where programs and instances live instead of ~/.cache/pull-secret/real-parts
part=node
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

here=$(dirname "$(realpath "$0")")
containerd_version=2.4.2
unpacked=$real_parts/node-containerd-$containerd_version
user=puller

# absent_why: prints what of the machine makes a node impossible; fails if nothing does.
absent_why() {
  [[ $(stat -f -c %T /sys/fs/cgroup/memory 2>/dev/null) == cgroupfs ]] && return 1
  echo "this machine has no cgroup v1 controllers in /sys/fs/cgroup, with which runc 1.1 is run"
}

# A cluster that somebody has already is none that this could add a node to.
kubernetes() { env -u REAL_KUBECONFIG -u KUBEBUILDER_ASSETS "$here/kubernetes.sh" "$@"; }

# get: sets `bin` to the folder with Kubernetes' binaries.
get() {
  ((EUID == 0)) || fail "needs root, for namespaces, mounts and cgroups"
  need perl sha256sum tar
  "$here/systemd.sh" get
  bin=$(kubernetes get-node)
  [[ -x $unpacked/usr/bin/containerd ]] && return
  lock "$real_parts/node-get.lock" "another run is getting the programs; waiting for it"
  [[ -x $unpacked/usr/bin/containerd ]] || unpack
  unlock
}

# unpack: containerd from its Go module, as Kubernetes wants a newer one than Debian's; the others from Debian.
unpack() {
  local folder containerd=github.com/containerd/containerd/v2
  unpack_debian "$unpacked.new" "adduser init-system-helpers iptables lsb-base" \
    runc containernetworking-plugins busybox-static docker-registry
  begin_go 3000000
  go_build "$unpacked.new/usr/bin" $containerd "v$containerd_version" "-X $containerd/version.Version=v$containerd_version" \
    $containerd/cmd/{containerd,containerd-shim-runc-v2,ctr}
  end_go
  # What Debian 12 unpacks beside /usr belongs into it.
  for folder in bin sbin lib; do
    [[ ! -d $unpacked.new/$folder ]] || cp -a "$unpacked.new/$folder/." "$unpacked.new/usr/$folder/"
  done
  rm -rf "$unpacked"
  mv "$unpacked.new" "$unpacked"
}

# --- the node's files ---

write() { mkdir -p "$(dirname "$inside/$1")" && cat >"$inside/$1"; }

# unit NAME: a unit of the node from standard input, started with it.
unit() {
  write "units/$1"
  mkdir -p "$inside/etc/systemd/system/multi-user.target.wants"
  ln -sf "/usr/lib/systemd/system/$1" "$inside/etc/systemd/system/multi-user.target.wants/"
}

# forward NAME TO [IN_NODE|OUTSIDE] ADDRESS: connections to ADDRESS in one network go on to TO in the other one.
forward() {
  local listening='' connecting='NetworkNamespacePath=/outside'
  [[ $3 == IN_NODE ]] || { listening=$connecting && connecting=''; }
  unit "forward-$1.socket" <<END
[Unit]
DefaultDependencies=no
[Socket]
ListenStream=$4
FreeBind=true
$listening
END
  write "units/forward-$1.service" <<END
[Unit]
Requires=forward-$1.socket
[Service]
Type=exec
ExecStart=/usr/lib/systemd/systemd-socket-proxyd $2
$connecting
END
}

containerd_files() {
  unit containerd.service <<'END'
[Service]
Type=notify
ExecStart=/usr/bin/containerd
StandardError=append:/var/log/containerd.log
Delegate=yes
KillMode=process
Restart=always
RestartSec=1
END
  # Without CAP_SYS_RESOURCE oom_score_adj cannot be lowered.
  write etc/containerd/config.toml <<'END'
version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "localhost/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
END
  write etc/cni/net.d/10-pods.conflist <<'END'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local",
  "ranges": [[{"subnet": "10.98.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
}

# kubelet_files PORT. The node is called localhost, which is where the API server finds its kubelet.
kubelet_files() {
  local limit
  limit=$(ulimit -Hn)
  [[ $limit != unlimited && $limit -lt 1000000 ]] || limit=1000000
  # It looks for an EC2 machine otherwise, at every start.
  unit kubelet.service <<'END'
[Unit]
Wants=containerd.service
After=containerd.service
[Service]
Type=notify
Environment=AWS_EC2_METADATA_DISABLED=true
ExecStartPre=/bin/sh -c 'echo start >>/var/lib/kubelet/starts'
ExecStart=/opt/bin/kubelet --config=/etc/kubernetes/kubelet.yaml --kubeconfig=/etc/kubernetes/kubeconfig \
  --hostname-override=localhost --node-ip=10.99.0.1 $KUBELET_EXTRA_ARGS
StandardError=append:/var/log/kubelet.log
Delegate=yes
KillMode=process
Restart=always
RestartSec=1
END
  write etc/kubernetes/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: $1
readOnlyPort: 0
healthzPort: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
oomScoreAdj: 1000
maxOpenFiles: $limit
resolvConf: /etc/resolv.conf
volumePluginDir: /var/lib/kubelet/volume-plugins
nodeStatusUpdateFrequency: 1s
imageGCHighThresholdPercent: 100 # the disk is the machine's
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
END
  cp "$REAL_KUBECONFIG" "$inside/etc/kubernetes/kubeconfig"
}

# registry_files ADDRESS PASSWORD. It takes bcrypt alone.
registry_files() {
  unit registry.service <<'END'
[Service]
ExecStart=/usr/bin/docker-registry serve /etc/registry.yaml
StandardOutput=append:/var/log/registry.log
StandardError=append:/var/log/registry.log
Restart=always
RestartSec=1
END
  write etc/registry.yaml <<END
version: 0.1
storage: {filesystem: {rootdirectory: /var/lib/registry}}
http: {addr: "$1"}
auth: {htpasswd: {realm: real-parts, path: /etc/registry.passwords}}
END
  # shellcheck disable=SC2016 # Perl's
  perl -e 'print "$ARGV[0]:", crypt($ARGV[1], "\$2b\$05\$realpartsrealpartsrealu"), "\n"' "$user" "$2" |
    write etc/registry.passwords
}

# --- images ---

digest() { sha256sum "$1" | cut -d ' ' -f 1; }

# import FOLDER REFERENCE ENTRYPOINT…: gives the node an image of one layer, as `docker save` would write it.
import() {
  local scratch word words=''
  for word in "${@:3}"; do words+="${words:+, }\"$word\""; done
  scratch=$(mktemp -d "$run/image.XXXXXX")
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$1" -cf "$scratch/layer.tar" .
  cat >"$scratch/config.json" <<END
{"architecture": "$(dpkg --print-architecture)", "os": "linux",
 "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Entrypoint": [$words]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(digest "$scratch/layer.tar")"]}}
END
  printf '[{"Config": "config.json", "RepoTags": ["%s"], "Layers": ["layer.tar"]}]' "$2" >"$scratch/manifest.json"
  tar -C "$scratch" -c manifest.json config.json layer.tar | in_node ctr --namespace k8s.io images import - >>"$run/ctr.log"
  rm -rf "$scratch"
}

in_node() { "$REAL_SYSTEMD_ENTER" "$@"; }

# images REGISTRY PASSWORD: those that the node has, and those that it has to pull. The others' digests differ.
images() {
  local folder=$run/busybox private
  mkdir -p "$folder/bin"
  cp "$unpacked/usr/bin/busybox" "$folder/bin/"
  import "$folder" localhost/pause:1 /bin/busybox tail -f /dev/null
  import "$folder" localhost/busybox:1 /bin/busybox
  for private in app other; do
    echo "$private" >"$folder/name"
    import "$folder" "$1/team/$private:1" /bin/busybox
    in_node ctr --namespace k8s.io images push --plain-http --user "$user:$2" "$1/team/$private:1" >>"$run/ctr.log" 2>&1
    in_node ctr --namespace k8s.io images remove "$1/team/$private:1" >>"$run/ctr.log"
  done
}

# --- an instance ---

up() {
  local why
  ((EUID == 0)) || fail "needs root, for namespaces, mounts and cgroups"
  if why=$(absent_why); then
    say "a complete node cannot be had: $why"
    printf 'export REAL_NODE_ABSENT=%q\n' "$why"
    return
  fi
  get
  lock_instance
  if ! is_up; then
    end_all
    (umask 077 && mkdir -p "$run")
    trap 'keep_logs; kill_all; end_parts; say "not started; logs are in $run"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    start_all
    trap - EXIT INT TERM HUP
  fi
  cat "$run/exports"
}

is_up() { [[ -e $run/exports ]] && alive "$run/kube-scheduler.pid" && alive "$real_parts/run/systemd-node-$name/node.pid"; }

keep_logs() { cp /proc/"$(node_pid)"/root/var/log/*.log "$run/" || true; } 2>/dev/null

# node_pid: the node's PID 1 as this machine sees it.
node_pid() { echo "${REAL_SYSTEMD_BUS//[^0-9]/}"; }

kubectl() { "$bin/kubectl" --kubeconfig "$REAL_KUBECONFIG" --cache-dir "$run/kubectl" "$@"; }

# ready: the node's condition Ready and the time when it was reported.
ready() { kubectl get node localhost -o 'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime}{end}'; }

is_ready() { [[ $(ready) == True* ]]; }

is_ready_again() { is_ready && [[ $(ready) != "$before" ]]; }

start_all() {
  local began=${EPOCHREALTIME/[.,]/} api registry kubelet password exports took
  umask 077
  exports=$(kubernetes up "node-$name")
  eval "$exports"
  read -r registry kubelet <<<"$(free_ports 2)"
  registry=127.0.0.1:$registry
  password=$(od -An -N 12 -tx1 /dev/urandom | tr -d ' \n')
  api=$(kubectl config view -o 'jsonpath={.clusters[0].cluster.server}')
  api=${api#https://}

  umask 022
  inside=$run/files
  mkdir -p "$inside"/etc/kubernetes "$inside"/var/lib/{containerd,registry}
  ln -s "$bin" "$run/sbin"
  echo "$unpacked/usr" >"$run/layer"
  echo 10.96.0.1/32 10.99.0.1/32 >"$run/addresses"
  printf '%s\n' '127.0.0.1 localhost' | write etc/hosts
  : | write etc/resolv.conf
  containerd_files
  kubelet_files "$kubelet"
  registry_files "$registry" "$password"
  forward api "$api" IN_NODE "$api"
  forward service "$api" IN_NODE 10.96.0.1:443
  forward registry "$registry" OUTSIDE "$registry"
  forward kubelet "127.0.0.1:$kubelet" OUTSIDE "127.0.0.1:$kubelet"
  boot up

  start kube-scheduler "$bin/kube-scheduler" --kubeconfig "$REAL_KUBECONFIG" --leader-elect=false --secure-port 0
  await "containerd on the node" in_node ctr version
  images "$registry" "$password"
  await "node that is ready" is_ready
  # What the controller nodelifecycle would do, which is left out for the sake of Node objects made by hand.
  kubectl taint node localhost node.kubernetes.io/not-ready- >>"$run/kubectl.log"
  write_exports
  took=$(((${EPOCHREALTIME/[.,]/} - began) / 100000))
  say "'$name' is up after $((took / 10)).$((took % 10)) s, its registry at $registry"
}

# boot up|reboot: the node itself, its network joined with this one.
boot() {
  local exports
  echo "/proc/$$/ns/net" >"$run/network"
  exports=$(SYSTEMD_CONTAINERS=$run "$here/systemd.sh" "$1" "node-$name")
  eval "$exports"
}

write_exports() {
  (umask 077 && printf 'export %s=%q\n' REAL_NODE_KUBECONFIG "$REAL_KUBECONFIG" REAL_NODE_KUBECTL "$REAL_KUBECTL" \
    REAL_NODE_NAME localhost REAL_NODE_REGISTRY "$registry" REAL_NODE_REGISTRY_USER "$user" \
    REAL_NODE_REGISTRY_PASSWORD "$password" REAL_NODE_IMAGE "$registry/team/app:1" \
    REAL_NODE_OTHER_IMAGE "$registry/team/other:1" REAL_NODE_PID "$(node_pid)" REAL_NODE_ROOT "/proc/$(node_pid)/root" \
    REAL_NODE_ENTER "$REAL_SYSTEMD_ENTER" REAL_NODE_RUN "$run" REAL_NODE_SCRIPT "$script" REAL_NODE_INSTANCE "$name" \
    REAL_PARTS_DIR "$real_parts" >"$run/exports.new")
  mv "$run/exports.new" "$run/exports"
}

reboot() {
  local before registry password
  lock_instance
  [[ -e $run/exports ]] || fail "there is no '$name'; 'up' starts one"
  # shellcheck disable=SC1091 # written by up
  . "$run/exports"
  REAL_KUBECONFIG=$REAL_NODE_KUBECONFIG REAL_KUBECTL=$REAL_NODE_KUBECTL
  bin=$(dirname "$REAL_KUBECTL") registry=$REAL_NODE_REGISTRY password=$REAL_NODE_REGISTRY_PASSWORD
  before=$(ready)
  boot reboot
  await "node that is ready again" is_ready_again
  write_exports
  cat "$run/exports"
}

end_parts() {
  "$here/systemd.sh" down "node-$name"
  kubernetes down "node-$name"
} 2>/dev/null

end_all() {
  end_parts
  kill_all
  rm -rf "$run"
}

down() {
  lock_instance
  if [[ -d $run ]]; then
    end_all
    say "'$name' is ended and removed"
  else
    say "there is no '$name'"
  fi
  rm -f "$run.lock"
}

# on_node COUNT COMMAND…: runs a function that works on the node with at least so many arguments.
on_node() {
  [[ -e $run/exports && $# -ge $(($1 + 2)) ]] || fail "there is no '$name', or too little is said; see the top of node.sh"
  # shellcheck disable=SC1091 # written by up
  . "$run/exports"
  REAL_SYSTEMD_ENTER=$REAL_NODE_ENTER
  "${@:2}"
}

load() { in_node ctr --namespace k8s.io images import - <"$1" >>"$run/ctr.log" 2>&1; }

# forward_now IN_NODE|OUTSIDE ADDRESS TO: what `forward` prepares before the node starts.
forward_now() {
  local unit=forward-${2//[.:]/-} outside=NetworkNamespacePath=/outside listening=() connecting=()
  if [[ $1 == IN_NODE ]]; then connecting=(--property="$outside"); else listening=(--socket-property="$outside"); fi
  in_node systemctl --quiet stop "$unit.socket" "$unit.service" 2>/dev/null || true
  in_node systemd-run --quiet --unit="$unit" --socket-property="ListenStream=$2" --socket-property=FreeBind=true \
    "${listening[@]}" "${connecting[@]}" /usr/lib/systemd/systemd-socket-proxyd "$3" >>"$run/ctr.log" 2>&1
}

name=${2:-default}
[[ $name =~ ^[a-z0-9][a-z0-9-]{0,30}$ ]] || fail "the name '$name' should be a-z, 0-9 and -"
run=$real_parts/run/node-$name
script=$(realpath "$0")
need flock setpriv setsid
mkdir -p "$real_parts/run"
case ${1:-} in
  get) get ;;
  up) up ;;
  load) on_node 1 load "${@:3}" ;;
  forward) on_node 3 forward_now "${@:3}" ;;
  reboot) reboot ;;
  down) down ;;
  *) fail "usage: node.sh get | up [NAME] | reboot [NAME] | load NAME ARCHIVE | forward NAME IN_NODE|OUTSIDE ADDRESS TO | down [NAME]" ;;
esac
