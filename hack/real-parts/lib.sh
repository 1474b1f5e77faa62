# shellcheck shell=bash
# What the scripts here share: messages, the folder they keep things in, locks, Debian packages, processes, ports.
# It is sourced, never run; the sourcing script sets `part` to what it is about.

set -euo pipefail
shopt -s nullglob

real_parts=$(realpath -m "${REAL_PARTS_DIR:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/pull-secret/real-parts}")

say() { echo "${part:?}: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

need() {
  local command
  for command; do
    type -P "$command" >/dev/null || fail "$command is missing; install it and run this again"
  done
}

# --- locks ---

# lock FILE WAITING: holds FILE until this script ends or calls unlock; says WAITING if somebody else holds it.
# Whoever holds a lock may remove its file, so what was locked must still be what has the name.
lock() {
  mkdir -p "$(dirname "$1")"
  while true; do
    exec 9>"$1"
    flock -n 9 || { say "$2"; flock 9; }
    [[ $1 -ef /proc/self/fd/9 ]] && return
  done
}

unlock() { exec 9>&-; }

# --- long steps ---

child=

# step COMMAND…: runs it with its output in $log. Bash acts on a signal only between foreground commands, so it runs in
# the background; and it dies with this script even if that is killed.
step() {
  setpriv --pdeathsig KILL "$@" </dev/null >>"${log:?}" 2>&1 9>&- &
  child=$!
  wait "$child" || fail "failed: ${*:1:3}; see $log"
  child=
}

end_step() {
  [[ -n $child ]] || return 0
  kill -s KILL "$child" 2>/dev/null || true
  wait "$child" 2>/dev/null || true
}

# --- Debian packages ---

# private_apt FOLDER KIND…: lets apt work in FOLDER on the bookworm archive; KIND is deb or deb-src. The system's sources,
# package lists and hooks play no part and stay as they are; only its mirror and its proxy settings are taken over.
private_apt() {
  local mirror kind folder=$1
  shift
  # shellcheck disable=SC2016 # apt fills these in
  mirror=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 ~ /^(bookworm|(old)*stable)$/ && $3 == "main" && !seen++ { print $1 }')
  [[ -n $mirror ]] || fail "apt on this machine has no source for Debian 12 (bookworm) main, which is needed for $part"
  mkdir -p "$folder"/{lists,archives}/partial
  for kind; do
    echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main"
  done >"$folder/sources.list"
  {
    apt-config dump | grep -E '^Acquire::(https?|Retries|ForceIPv[46])\b' || true
    cat <<END
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$folder/lists";
Dir::Cache "$folder";
Acquire::Languages "none";
APT::Sandbox::User "root";
Debug::NoLocking "true";
END
  } >"$folder/apt.conf"
  export APT_CONFIG=$folder/apt.conf
}

# unpack_debian FOLDER 'LEFT_OUT…' PACKAGE…: downloads the packages and what they depend on, and unpacks them into FOLDER;
# nothing is installed and root is not needed. What is installed plays no part, so the outcome is the same on every
# machine; of the system only libc is used. LEFT_OUT are packages to do without, and without what only they depend on.
unpack_debian() {
  local folder=$1 left_out=$2 began=$SECONDS scratch tool package packages size
  shift 2
  log=$real_parts/$part-get.log
  for tool in apt-get apt-config dpkg-deb; do
    type -P $tool >/dev/null || fail "$tool is missing, as this takes Debian 12's packages; elsewhere, install $part"
  done
  rm -rf "$real_parts/$part"-unpack.* # left behind by a run that was killed
  scratch=$(mktemp -d "$real_parts/$part-unpack.XXXXXX")
  # shellcheck disable=SC2064 # expanded now: the trap outlives this function
  trap "end_step; rm -rf '$scratch'" EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  : >"$log"

  say "getting $* from Debian, once; details in $log"
  private_apt "$scratch/apt" deb
  cat >>"$APT_CONFIG" <<END
Dir::State::status "$scratch/apt/status";
Dir::State::extended_states "$scratch/apt/extended_states";
END
  for package in libc6 debconf dpkg $left_out; do
    printf '%s\n' "Package: $package" 'Status: install ok installed' 'Version: 9999:0' \
      "Architecture: $(dpkg --print-architecture)" 'Maintainer: nobody' 'Description: left out' ''
  done >"$scratch/apt/status"
  step apt-get --quiet --error-on=any update
  step apt-get --quiet --yes --no-install-recommends --download-only install "$@"
  unset APT_CONFIG

  packages=("$scratch"/apt/archives/*.deb)
  size=$(du -cm "${packages[@]}" | tail -n 1 | cut -f 1)
  say "unpacking ${#packages[@]} packages of together $size MB"
  mkdir "$scratch/unpacked"
  for package in "${packages[@]}"; do step dpkg-deb --extract "$package" "$scratch/unpacked"; done
  rm -rf "$scratch"/unpacked/usr/share/{doc,man,locale}
  chmod 755 "$scratch/unpacked"
  rm -rf "$folder" # not there, or incomplete
  mv "$scratch/unpacked" "$folder"
  say "got in $((SECONDS - began)) s: $folder"
  rm -rf "$scratch"
  trap - EXIT INT TERM HUP
}

# library_path FOLDER: the LD_LIBRARY_PATH for what unpack_debian has unpacked there.
library_path() {
  local folders=("$1"/{usr/,}lib/*-linux-gnu*/ "$1"/usr/lib/*-linux-gnu*/pulseaudio/)
  local IFS=:
  echo "${folders[*]%/}"
}

# --- commands of Go modules ---

# begin_go KILOBYTES: prepares for go_build, which will need that much room in the end; end_go ends it.
begin_go() {
  log=$real_parts/$part-get.log
  type -P go >/dev/null || fail "go is missing, with which $part is built; install Go 1.26 or newer (https://go.dev/dl)"
  rm -rf "$real_parts/$part"-go.* # left behind by a run that was killed
  (($(df --output=avail -k "$real_parts" | tail -n 1) > $1)) || fail "building takes $(($1 / 1000000)) GB free in $real_parts"
  go_scratch=$(mktemp -d "$real_parts/$part-go.XXXXXX")
  trap 'end_step; rm -rf "$go_scratch"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  : >"$log"
}

end_go() {
  rm -rf "$go_scratch"
  trap - EXIT INT TERM HUP
}

# go_build FOLDER MODULE VERSION LDFLAGS PACKAGE…: builds commands of a published module into FOLDER, with the versions of
# dependencies that the module itself names. `go install PACKAGE@VERSION` refuses a module whose go.mod replaces others, so
# the module is built where Go has unpacked it, with a go.mod that takes the releases instead of the repository's folders.
go_build() {
  local folder=$1 module=$2 version=$3 flags=$4 began=$SECONDS source file
  shift 4
  say "getting $module $version, once; details in $log"
  (cd "$go_scratch" && step go mod download "$module@$version")
  source=$(cd "$go_scratch" && go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  sed -E -e '/=> \.{1,2}\//d' -e "s,(k8s\.io/[^ ]+) v0\.0\.0( |$),\1 v0.${version#v1.}\2," "$source/go.mod" >"$go_scratch/go.mod"
  cp "$source/go.sum" "$go_scratch/go.sum"
  say "compiling ${*##*/}"
  # -s -w: without symbols, half the size.
  GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0 step nice go build -C "$source" -modfile="$go_scratch/go.mod" -trimpath \
    -ldflags "-s -w $flags" -o "$go_scratch/bin/" "$@"
  # One at a time, each complete at once: an instance may be running what is there.
  mkdir -p "$folder"
  for file in "$go_scratch"/bin/*; do mv -f "$file" "$folder/"; done
  say "built in $((SECONDS - began)) s: $folder"
}

# --- libraries of clients ---

# get_python FOLDER PACKAGE==VERSION…: a virtual environment with them.
get_python() {
  local folder=$1 frozen package
  shift
  need python3
  frozen=$("$folder/bin/python" -m pip freeze 2>/dev/null || true)
  for package; do
    grep -qx "$package" <<<"$frozen" && continue
    say "getting $*"
    mkdir -p "$folder"
    python3 -m venv "$folder" || fail "python3 cannot make a venv; install its venv module (Debian: python3-venv)"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2
    return
  done
  say "$* is there"
}

# get_node FOLDER PACKAGE@VERSION…: a folder in whose node_modules they are.
get_node() {
  local folder=$1 package manifest
  shift
  need npm
  for package; do
    manifest=$folder/node_modules/${package%@*}/package.json
    [[ -f $manifest ]] && grep -q "\"version\": \"${package##*@}\"" "$manifest" && continue
    say "getting $*"
    mkdir -p "$folder"
    [[ -f $folder/package.json ]] || echo '{"private": true}' >"$folder/package.json"
    npm install --prefix "$folder" --no-audit --no-fund --loglevel=error "$@" >&2
    return
  done
  say "$* is there"
}

# --- processes of an instance; `run` is its folder ---

# start_time PID: when a living process began. A zombie counts as gone: whoever should reap it may take its time.
start_time() {
  local stat
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  read -ra stat <<<"${stat##*) }"
  [[ ${stat[0]} != [ZX] ]] && echo "${stat[19]}"
}

# start NAME COMMAND…: in a session of its own, output in $run/NAME.log. It notes itself before it becomes COMMAND, so
# that there is no moment at which it runs unknown; the start time tells it from a later process with the same pid.
start() {
  local file=${run:?}/$1.pid log=$run/$1.log
  shift
  (
    pid=$BASHPID
    for fd in /proc/"$pid"/fd/*; do # what it would hold open: locks, pipes of the caller; 255 is this script
      fd=${fd##*/}
      ((fd < 3 || fd == 255)) || eval "exec $fd>&-"
    done
    echo "$pid $(start_time "$pid")" >"$file"
    exec setsid "$@"
  ) </dev/null >>"$log" 2>&1 &
  disown
  until [[ -s $file ]]; do sleep 0.01; done
}

alive() { # a file as start writes it
  local pid since
  read -r pid since <"$1" && [[ $(start_time "$pid") == "$since" ]]
} 2>/dev/null

# kill_all: ends the instance's processes at once; nothing of theirs is to be kept.
kill_all() {
  local file end=$((SECONDS + 60))
  for file in "$run"/*.pid; do
    while alive "$file"; do
      kill -s KILL "$(cut -d ' ' -f 1 "$file")" 2>/dev/null || true
      ((SECONDS < end)) || fail "$(basename "$file" .pid) of $run does not die"
      sleep 0.02
    done
    rm -f "$file"
  done
}

# await WHAT COMMAND…: until COMMAND succeeds; fails as soon as a process of the instance has ended, or after 10 minutes.
await() {
  local what=$1 file end=$((SECONDS + 600))
  shift
  until "$@" >/dev/null 2>&1; do
    for file in "$run"/*.pid; do
      alive "$file" || fail "$(basename "$file" .pid) ended; see ${file%.pid}.log"
    done
    ((SECONDS < end)) || fail "no $what after 10 minutes; see $run/*.log"
    sleep 0.1
  done
}

# free_ports COUNT: that many loopback ports that nobody listens on and no other instance has noted in its `ports` file;
# notes them for this one. They lie below the range from which the kernel serves outgoing connections. A lock keeps two
# instances from choosing the same.
free_ports() (
  exec 8>"$real_parts/run/ports.lock"
  flock 8
  ports=()
  taken=" $(cat /dev/null "$real_parts"/run/*/ports 2>/dev/null | tr '\n' ' ' || true) "
  while ((${#ports[@]} < $1)); do
    port=$((21000 + RANDOM % 11000))
    [[ $taken == *" $port "* ]] && continue
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue
    ports+=("$port")
    taken+="$port "
  done
  echo "${ports[*]}" | tee "$run/ports"
)

# --- commands of an instance; a script may define `remove` and `discard` anew ---

# instance NAME: sets `name`, `run` (its folder) and `script` for the instance that a command is for.
instance() {
  name=${1:-default}
  [[ $name =~ ^[a-z0-9][a-z0-9-]{0,60}$ ]] || fail "the name '$name' should be a-z, 0-9 and -"
  run=$real_parts/run/$part-$name
  # shellcheck disable=SC2034 # the scripts export it
  script=$(realpath "$0")
  need flock setpriv setsid
}

lock_instance() { lock "$run.lock" "another run is working on '$name'; waiting for it"; }

# remove: ends the instance, whatever its state is, and removes all of it.
remove() {
  kill_all
  rm -rf "$run"
}

# discard: what could not be started; its logs are kept until the next `up` or `down`.
discard() {
  trap - EXIT
  kill_all
  say "not started; logs are in $run"
}

# begin: an empty folder for a new instance, which is discarded unless `keep` follows.
begin() {
  kill_all
  rm -rf "$run"
  (umask 077 && mkdir -p "$run")
  trap 'discard' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

# keep VARIABLE VALUE…: the new instance is complete; these are what it exports.
keep() {
  printf 'export %s=%q\n' "$@" REAL_PARTS_DIR "$real_parts" >"$run/exports.new"
  mv "$run/exports.new" "$run/exports"
  trap - EXIT INT TERM HUP
}

down() {
  lock_instance
  if [[ -d $run ]]; then
    remove
    say "'$name' is ended and removed"
  else
    say "there is no '$name'"
  fi
  rm -f "$run.lock"
}

# existing: takes hold of an instance that `up` has started; `load` reads its settings.
existing() {
  lock_instance
  if [[ -e $run/exports ]]; then
    load
  else
    [[ -d $run ]] || rm -f "$run.lock"
    fail "there is no '$name'; 'up' starts one"
  fi
}

# signal PROCESS NAME: to a process of the instance, which must be running.
signal() {
  local pid
  existing
  is_up || fail "'$name' is not running"
  read -r pid _ <"$run/$1.pid"
  kill -s "$2" "$pid"
  # One thread takes the signal and stops the others: until it gets a processor, they go on.
  [[ $2 != STOP ]] || while grep --quiet --invert-match '^State:.[TZ]' < <(grep --no-filename '^State:' "/proc/$pid/task/"*/status); do
    sleep 0.01
  done
}

start_again() {
  existing
  is_up || launch
}
