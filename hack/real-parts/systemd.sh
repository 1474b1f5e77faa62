#!/usr/bin/env bash
# Gets, starts and ends a real systemd: PID 1 of namespaces of its own, with a D-Bus that can be reached from outside, and
# a unit `kubelet.service` in it. Needs root. What is installed is used, else Debian's packages are laid over /usr.
#
#   systemd.sh get                makes sure that the programs are there; may download 10 MB, once
#   systemd.sh up [NAME]          starts a node and prints export lines, of which these are for tests:
#                                 e=$(hack/real-parts/systemd.sh up) && eval "$e"
#                                   REAL_SYSTEMD_BUS       the address of its system bus
#                                   REAL_SYSTEMD_KUBELET   its /var/lib/kubelet, a folder of this machine
#                                   REAL_SYSTEMD_ENTER     runs a command in it, such as: systemctl status kubelet
#                                   REAL_SYSTEMD_RUN       the instance's folder
#                                   REAL_SYSTEMD_SCRIPT    this script's absolute path, and
#                                   REAL_SYSTEMD_NAME      NAME, to call it with
#   systemd.sh down [NAME]        ends it at once, as a power cut would, and removes its data
#   systemd.sh reboot [NAME]      ends it at once and starts it again; /var/lib is kept, all else of it is new. Prints the new
#                                 export lines
#   systemd.sh bus-stop [NAME]    ends its D-Bus: the socket is there and nobody answers, or there is none
#   systemd.sh bus-start [NAME]   starts it again
#
# The kubelet is a stand-in of Type=notify with Restart=always and systemd's own start limit. It notes each start in
# `starts`, and what it runs with in `seen.json`, both in REAL_SYSTEMD_KUBELET. Registries in its config.json say what
# becomes of it: refuse.example.com ends it at once, hang.example.com keeps it from becoming ready, flap.example.com ends it
# 0.3 s after that. A file `broken` beside them ends it whatever config.json says.
#
# node.sh makes a complete node of it, with containerd and a real kubelet as units, by
#
#   SYSTEMD_CONTAINERS            a folder: files/ comes over the node's root, sbin/ is its /opt/bin, layer names a folder to
#                                 lay over /usr, addresses are those of its loopback interface, and network is the network
#                                 that its units find as /outside. The node then gets all cgroup controllers too
#
#   REAL_PARTS_DIR                where programs and instances live instead of ~/.cache/pull-secret/real-parts
part=systemd
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

unpacked=$real_parts/systemd-debian-12
cgroups=/sys/fs/cgroup
containers=${SYSTEMD_CONTAINERS:-}

# --- get ---

# get: sets `layer` to what has to be laid over /usr, or to nothing if systemd and D-Bus are installed.
get() {
  ((EUID == 0)) || fail "needs root, for namespaces and mounts"
  layer=
  [[ -x /usr/lib/systemd/systemd ]] && type -P dbus-daemon busctl >/dev/null && return
  layer=$unpacked/usr
  [[ -x $layer/lib/systemd/systemd ]] && return
  mkdir -p "$real_parts"
  lock "$real_parts/systemd-get.lock" "another run is getting the programs; waiting for it"
  [[ -x $layer/lib/systemd/systemd ]] || unpack_debian "$unpacked" "adduser init-system-helpers" systemd dbus iproute2
  # What Debian 12 unpacks beside /usr belongs into it.
  local folder
  for folder in bin sbin lib; do
    [[ ! -d $unpacked/$folder || -L $unpacked/$folder ]] || cp -a "$unpacked/$folder/." "$unpacked/usr/$folder/"
  done
  unlock
}

# --- inside: from here on in namespaces of its own ---

# hierarchies: the cgroup hierarchies that the node needs, below $cgroups; "." where there is only one.
hierarchies() {
  if [[ $(stat -f -c %T "$cgroups") == cgroup2fs ]]; then
    echo .
  else
    local path
    for path in "$cgroups"/*; do
      case ${path##*/} in
        systemd | unified) echo "${path##*/}" ;;
        *) [[ -z $containers || -L $path || $(stat -f -c %T "$path") != cgroupfs ]] || echo "${path##*/}" ;;
      esac
    done
  fi
}

# inside: joins cgroups of its own, and goes on in a cgroup namespace that begins there.
inside() {
  local name file
  for name in $(hierarchies); do
    mkdir -p "$cgroups/$name/pull-secret-$instance"
    if [[ $name == *cpuset* ]]; then # takes no process before it has these
      for file in cpuset.cpus cpuset.mems; do cat "$cgroups/$name/$file" >"$cgroups/$name/pull-secret-$instance/$file"; done
    fi
    echo 0 >"$cgroups/$name/pull-secret-$instance/cgroup.procs"
  done
  exec unshare --cgroup bash "$script" boot "$instance"
}

write() { mkdir -p "$(dirname "$root/$1")" && cat >"$root/$1"; }

# boot: builds a root on a tmpfs and becomes systemd.
boot() {
  root=$run/root
  layer=$(<"$run/layer")
  mkdir -p "$root"
  mount -t tmpfs -o mode=755,size=2g node "$root" # taken as it fills
  mkdir -p "$root"/{usr,etc/systemd/system,proc,sys,dev,run,tmp,root,old,units,none,var/{tmp,log,lib}}
  chmod 1777 "$root"/{tmp,var/tmp}
  local name
  for name in bin sbin lib lib64; do ln -s usr/$name "$root/$name"; done
  ln -s ../run "$root/var/run"
  [[ -z $containers ]] || layer=$(<"$containers/layer")${layer:+:$layer}
  if [[ -n $layer ]]; then
    mount -t overlay -o "ro,lowerdir=$layer:/usr" node "$root/usr"
  else
    mount --bind /usr "$root/usr"
    mount -o remount,bind,ro "$root/usr"
  fi
  # None of the machine's own services: of what systemd ships, targets and slices alone.
  cp "$root"/usr/lib/systemd/system/*.{target,slice} "$root/units/"
  mount --bind "$root/units" "$root/usr/lib/systemd/system"
  mount --bind "$root/none" "$root/usr/lib/systemd/system-generators"
  mount --bind "$run/lib" "$root/var/lib"
  files
  ip link set lo up
  [[ -z $containers ]] || for_containers
  mounts
  cd "$root"
  pivot_root . old
  umount -l /old
  # As systemd does where it is not in a container: what a kubelet needs to hand mounts on to Pods.
  mount --make-rshared /
  exec env -i container=real-parts PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /usr/lib/systemd/systemd --log-target=null --show-status=no --unit=multi-user.target
}

files() {
  printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'messagebus:x:100:100::/:/usr/sbin/nologin' | write etc/passwd
  printf '%s\n' 'root:x:0:' 'messagebus:x:100:' 'nogroup:x:65534:' | write etc/group
  echo node | write etc/hostname
  tr -d - </proc/sys/kernel/random/uuid | write etc/machine-id
  echo 'ID=real-parts' | write etc/os-release
  write etc/systemd/system/dbus.socket <<'END'
[Unit]
DefaultDependencies=no
[Socket]
ListenStream=/run/dbus/system_bus_socket
END
  write etc/systemd/system/dbus.service <<'END'
[Unit]
DefaultDependencies=no
Requires=dbus.socket
StartLimitIntervalSec=0
[Service]
Type=notify
ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile --systemd-activation
END
  # Beside systemd's own, not in /etc: what is there cannot be masked.
  write units/kubelet.service <<'END'
[Service]
Type=notify
NotifyAccess=all
ExecStart=/bin/bash /etc/kubelet
Restart=always
RestartSec=1
TimeoutStopSec=5
END
  write etc/kubelet <<'END'
cd /var/lib/kubelet || exit
echo start >>starts
says() { grep -q "$1" config.json 2>/dev/null; }
if [[ -e broken ]] || says refuse.example.com; then exit 1; fi
if says hang.example.com; then exec sleep infinity; fi
rm -f seen.json
if [[ -e config.json ]]; then cp config.json seen.new && mv seen.new seen.json; fi
systemd-notify --ready
if says flap.example.com; then sleep 0.3; exit 1; fi
exec sleep infinity
END
  mkdir -p "$root"/etc/systemd/system/{sockets,multi-user}.target.wants
  ln -s ../dbus.socket "$root/etc/systemd/system/sockets.target.wants/"
  ln -s ../dbus.service /usr/lib/systemd/system/kubelet.service "$root/etc/systemd/system/multi-user.target.wants/"
}

mounts() {
  local name
  mount -t proc proc "$root/proc"
  mount --bind "$root/proc/sys" "$root/proc/sys"
  mount -o remount,bind,ro "$root/proc/sys"
  [[ -z $containers ]] || sysctls
  mount -t sysfs -o ro sysfs "$root/sys"
  [[ $(hierarchies) == . ]] || mount -t tmpfs -o mode=755 node "$root/sys/fs/cgroup"
  for name in $(hierarchies); do
    mkdir -p "$root/sys/fs/cgroup/$name"
    case $name in
      systemd) mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/$name" ;;
      unified | .) mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/$name" ;;
      *) mount -t cgroup -o "$name" cgroup "$root/sys/fs/cgroup/$name" ;;
    esac
  done
  mount -t tmpfs -o mode=755 node "$root/dev"
  for name in null zero full random urandom tty ${containers:+kmsg}; do
    : >"$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
  done
  mkdir "$root/dev/shm"
  ln -s /proc/self/fd "$root/dev/fd"
}

# for_containers: what containerd and kubelet need beyond what every node has.
for_containers() {
  local name
  cp -a "$containers/files/." "$root/"
  mkdir -p "$root/opt/bin"
  mount --bind "$containers/sbin" "$root/opt/bin"
  for name in $(<"$containers/addresses"); do ip address add "$name" dev lo; done
  : >"$root/outside"
  mount --bind "$(<"$containers/network")" "$root/outside"
  hostname localhost
}

# sysctls: the node's own network may be set; kubelet insists on a few more, for which plain files take its writes, so
# that the machine's values stay.
sysctls() {
  local setting path
  mount --bind /proc/sys/net "$root/proc/sys/net"
  for setting in vm/overcommit_memory:1 kernel/panic:10 kernel/panic_on_oops:1 kernel/keys/root_maxkeys:1000000 \
    kernel/keys/root_maxbytes:25000000; do
    path=none-of-the-machine/${setting%:*}
    echo "${setting#*:}" | write "$path"
    mount --bind "$root/$path" "$root/proc/sys/${setting%:*}"
  done
}

# --- an instance: `run` is its folder ---

# init: sets `init` to the node's PID 1 as this machine sees it.
init() {
  local parent
  read -r parent _ <"$run/node.pid" && init=$(<"/proc/$parent/task/$parent/children") && init=${init// /} && [[ -n $init ]]
} 2>/dev/null

ask_bus() { busctl --address="unix:path=/proc/$init/root/run/dbus/system_bus_socket" --no-pager "$@"; }

# is_booted: the kubelet runs, and nothing is left to do.
is_booted() {
  local manager=(org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager)
  init && [[ -s $run/lib/kubelet/starts && $(ask_bus get-property "${manager[@]}" NJobs) == 'u 0' ]]
}

# forget: what the node leaves behind in the machine's cgroups. The kernel lets go of killed processes after a moment.
forget() {
  local path end=$((SECONDS + 10))
  for path in "$cgroups/pull-secret-$name" "$cgroups"/*/"pull-secret-$name"; do
    while [[ -d $path ]] && ! find "$path" -depth -type d -exec rmdir {} + 2>/dev/null; do
      ((SECONDS < end)) || { say "cannot remove $path" && break; }
      sleep 0.05
    done
  done
}

up() {
  get
  lock_instance
  if ! { [[ -e $run/exports ]] && alive "$run/node.pid"; }; then replace; fi
  cat "$run/exports"
}

replace() {
  kill_all
  forget
  rm -rf "$run"
  (umask 077 && mkdir -p "$run/lib/kubelet")
  echo "$layer" >"$run/layer"
  boot_node
}

reboot() {
  lock_instance
  [[ -e $run/exports ]] || fail "there is no '$name'; 'up' starts one"
  kill_all
  forget
  boot_node
  cat "$run/exports"
}

boot_node() {
  local began=${EPOCHREALTIME/[.,]/} took
  trap 'kill_all; say "not started; its folder is $run"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  start node unshare --mount --propagation private --pid --uts --ipc --net --fork --kill-child bash "$script" inside "$name"
  await "node that has booted" is_booted
  printf '#!/bin/sh\nexec nsenter --target %q --all --wd -- "$@"\n' "$init" >"$run/enter"
  chmod +x "$run/enter"
  printf 'export %s=%q\n' REAL_SYSTEMD_BUS "unix:path=/proc/$init/root/run/dbus/system_bus_socket" \
    REAL_SYSTEMD_KUBELET "$run/lib/kubelet" REAL_SYSTEMD_ENTER "$run/enter" REAL_SYSTEMD_RUN "$run" \
    REAL_SYSTEMD_SCRIPT "$script" REAL_SYSTEMD_NAME "$name" REAL_PARTS_DIR "$real_parts" >"$run/exports.new"
  mv "$run/exports.new" "$run/exports"
  trap - EXIT INT TERM HUP
  took=$(((${EPOCHREALTIME/[.,]/} - began) / 100000))
  say "'$name' is up after $((took / 10)).$((took % 10)) s"
}

remove() {
  kill_all
  forget
  rm -rf "$run"
}

# bus stop|start: systemd does it itself, as the way to it over D-Bus is what is cut.
bus() {
  [[ -x $run/enter ]] || fail "there is no '$name'; 'up' starts one"
  "$run/enter" env SYSTEMD_IGNORE_CHROOT=1 systemctl "$1" dbus.socket dbus.service
}

instance "${2:-}"
instance=$name
need unshare
(($# <= 2)) || set --
case ${1:-} in
  get) get ;;
  up) up ;;
  down) down ;;
  reboot) reboot ;;
  bus-stop) bus stop ;;
  bus-start) bus start ;;
  inside) inside ;;
  boot) boot ;;
  *) fail "usage: systemd.sh get | {up | down | reboot | bus-stop | bus-start} [NAME]" ;;
esac
