#!/usr/bin/env bash
# Gets, starts and ends a real PostgreSQL, throw-away and on loopback, where nobody is asked for a password. What is
# installed is used from version 13 on, else Debian's packages are unpacked beside the system.
#
#   postgresql.sh get              makes sure that the programs are there; may download 40 MB, once
#   postgresql.sh up [NAME]        starts an instance and prints export lines, of which these are for tests:
#                                  e=$(hack/real-parts/postgresql.sh up) && eval "$e"
#                                    REAL_POSTGRESQL_URL      postgresql://postgres@127.0.0.1:PORT/postgres
#                                    REAL_POSTGRESQL_RUN      the instance's folder, with the server's postgres.log
#                                    REAL_POSTGRESQL_SCRIPT   this script's absolute path, and
#                                    REAL_POSTGRESQL_NAME     NAME, to call it with in order to cause an outage
#   postgresql.sh down [NAME]      ends it and removes its data
#
# To take the database away and give it back, on the same port and with the same data:
#
#   postgresql.sh stop [NAME]      fast shutdown: sessions are cut off, what is committed is kept
#   postgresql.sh crash [NAME]     kill -9 of all its processes; what is committed is kept all the same
#   postgresql.sh start [NAME]     starts it again after either
#   postgresql.sh restart [NAME]   stop and start
#
# Each returns when it is done. Running any of them again is harmless: `up` starts an instance again that was stopped,
# and replaces one that died, or that `crash` ended, by a new, empty one.
#
#   REAL_POSTGRESQL_URL            an existing server, if no REAL_POSTGRESQL_RUN is with it: `up` starts nothing and
#                                  prints just that
#   REAL_POSTGRESQL_SHARED_BUFFERS=1GB   memory for pages instead of 32MB; benchmarks need as much as a real server has
#   REAL_PARTS_IGNORE_INSTALLED=1  does as if nothing were installed
#   REAL_PARTS_DIR                 where programs and instances live instead of ~/.cache/pull-secret/real-parts
part=postgresql
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

oldest=13
debian=15 # what Debian 12 has
unpacked=$real_parts/postgresql-$debian

# --- get ---

# get: sets `root` to the folder that the programs were unpacked into, if they were, and `bin` to theirs in it.
get() {
  root=''
  [[ -z ${REAL_PARTS_IGNORE_INSTALLED:-} ]] && bin=$(installed) && return
  root=$unpacked bin=/usr/lib/postgresql/$debian/bin
  if [[ ! -x $root$bin/postgres ]]; then
    mkdir -p "$real_parts"
    lock "$real_parts/postgresql-get.lock" "another run is getting the programs; waiting for it"
    # Its own client and the machinery for clusters in /etc are not needed, nor is compiling queries.
    [[ -x $root$bin/postgres ]] || unpack_debian "$unpacked" \
      "locales-all postgresql-client-$debian postgresql-common ssl-cert tzdata libllvm14" "postgresql-$debian"
    unlock
  fi
  # Debian's PostgreSQL looks for time zones only there.
  [[ -e /usr/share/zoneinfo/UTC ]] || fail "/usr/share/zoneinfo is missing; install tzdata and run this again"
}

# installed: prints the folder of the newest version there is, if it is new enough.
installed() {
  local folder version newest=0 found=
  for folder in /usr/lib/postgresql/*/bin "$(dirname "$(type -P initdb || echo /nowhere/initdb)")"; do
    [[ -x $folder/initdb && -x $folder/postgres ]] || continue
    version=$("$folder/postgres" --version 2>/dev/null) || continue
    [[ $version =~ \(PostgreSQL\)\ ([0-9]+) ]] || continue
    version=${BASH_REMATCH[1]}
    ((version < oldest || version <= newest)) || newest=$version found=$folder
  done
  [[ -n $found ]] && echo "$found"
}

# --- an instance: `run` is its folder, $run/instance tells what it was made with ---

note() { # VARIABLE…
  local variable
  for variable; do printf '%s=%q\n' "$variable" "${!variable}"; done >"$run/instance"
}

# load: sets home, bin, libraries, cluster and port, if there is an instance.
load() {
  # shellcheck disable=SC1091 # written by note
  [[ -e $run/instance ]] && . "$run/instance"
}

# server COMMAND…: sets `command` to COMMAND as the one who owns the data runs it. PostgreSQL refuses root, so that is
# `nobody` then.
server() {
  command=()
  ((EUID)) || command=(setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups)
  command+=(env -i PATH="$PATH" LC_ALL=C.UTF-8 ${libraries:+LD_LIBRARY_PATH="$libraries"} "$@")
}

# create: a new, empty instance. What `nobody` is to reach cannot be below a home folder, as others cannot enter that.
create() {
  local command programs=$root
  cluster=pull-secret-$name-$(od -An -N 4 -tx1 /dev/urandom | tr -d ' \n')
  port=$(free_ports 1)
  home=$run
  ((EUID)) || home=$(mktemp -d /var/tmp/pull-secret-postgresql.XXXXXX)
  note home
  libraries=
  if ((!EUID)); then
    chown "nobody:$(id -g nobody)" "$home"
    server test -x "$root$bin/postgres"
    if ! "${command[@]}"; then
      [[ -n $root ]] || fail "this runs as root, PostgreSQL then as nobody, and nobody cannot run $bin/postgres"
      programs=$home/programs
      cp -al "$root/." "$programs" 2>/dev/null || cp -aT "$root" "$programs" # links cannot leave a file system
    fi
  fi
  bin=$programs$bin
  [[ -z $programs ]] || libraries=$(library_path "$programs")
  note home bin libraries cluster port

  server "$bin/initdb" --no-sync --username postgres --auth trust --encoding UTF8 --locale C.UTF-8 --pgdata "$home/data"
  "${command[@]}" >"$run/initdb.log" 2>&1 || fail "initdb failed: $(tail -n 1 "$run/initdb.log"); see $run/initdb.log"
  # Without fsync no commit is lost unless the machine itself goes down. Dynamic shared memory in files is gone with the
  # data, even after a kill -9.
  cat >>"$home/data/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
max_connections = 200
fsync = off
full_page_writes = off
shared_buffers = ${REAL_POSTGRESQL_SHARED_BUFFERS:-32MB}
dynamic_shared_memory_type = mmap
jit = off
logging_collector = off
timezone = 'UTC'
log_timezone = 'UTC'
END
}

# launch: starts the server with the data it has, and waits until it takes connections.
launch() {
  local command
  end_all # what may be left of it
  rm -f "$home/data/postmaster.pid" # its pid may be a zombie's or somebody else's by now
  server "$bin/postgres" -D "$home/data" -c cluster_name="$cluster"
  start postgres "${command[@]}"
  await "server that is ready" grep -q '^ready' "$home/data/postmaster.pid"
  rm -f "$run/stopped"
}

# halt SIGNAL: tells the server to end; whatever has not ended after 20 seconds is killed.
halt() {
  local pid end=$((SECONDS + 20))
  if alive "$run/postgres.pid"; then
    read -r pid _ <"$run/postgres.pid"
    kill -s "$1" "$pid" 2>/dev/null || true
    while alive "$run/postgres.pid" && ((SECONDS < end)); do sleep 0.02; done
  fi
  end_all
}

# end_all: kill -9. Sessions outlive a killed server for as long as their query runs; their titles tell the cluster.
end_all() {
  local pids end=$((SECONDS + 60))
  kill_all
  while pids=$(grep -lsF -f <(echo "${cluster:?}") /proc/[0-9]*/cmdline | cut -d / -f 3) && [[ -n $pids ]]; do
    # shellcheck disable=SC2086 # one word each
    kill -s KILL $pids 2>/dev/null || true
    ((SECONDS < end)) || fail "processes of '$name' do not die: ${pids//$'\n'/ }"
    sleep 0.02
  done
}

# remove: ends an instance, whatever its state is, and removes all of it.
remove() {
  local home='' bin='' libraries='' cluster='' port='' claim=()
  load || true
  if [[ -n $cluster ]]; then
    halt QUIT
    # After a kill -9 the segment is left with which a server claims its data folder: lines 1 and 7 name maker and segment.
    mapfile -t claim 2>/dev/null <"$home/data/postmaster.pid" || true
    ((${#claim[@]} < 7)) ||
      awk -v maker="${claim[0]}" -v segment="${claim[6]##* }" '$2 == segment && $5 == maker && $7 == 0 { print $2 }' \
        /proc/sysvipc/shm | xargs -r -n 1 ipcrm -m || true
  fi
  [[ $home != /var/tmp/pull-secret-postgresql.* ]] || rm -rf "$home"
  rm -rf "$run"
}

is_up() { [[ -e $run/exports ]] && alive "$run/postgres.pid"; }

# --- what can be asked for ---

up() {
  local began took
  # One that an earlier `up` exported is no existing server: it may have ended since.
  if [[ -n ${REAL_POSTGRESQL_URL:-} && -z ${REAL_POSTGRESQL_RUN:-} ]]; then
    printf 'export REAL_POSTGRESQL_URL=%q\n' "$REAL_POSTGRESQL_URL"
    return
  fi
  get
  lock_instance
  if ! is_up; then
    began=${EPOCHREALTIME/[.,]/}
    if [[ -e $run/exports && -e $run/stopped ]]; then
      load
      launch
    else
      replace
    fi
    took=$(((${EPOCHREALTIME/[.,]/} - began) / 100000))
    say "'$name' is up after $((took / 10)).$((took % 10)) s at 127.0.0.1:$port"
  fi
  cat "$run/exports"
}

replace() {
  remove
  (umask 077 && mkdir "$run")
  trap 'discard' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  create
  launch
  printf 'export %s=%q\n' REAL_POSTGRESQL_URL "postgresql://postgres@127.0.0.1:$port/postgres" \
    REAL_POSTGRESQL_RUN "$run" REAL_POSTGRESQL_SCRIPT "$script" REAL_POSTGRESQL_NAME "$name" \
    REAL_PARTS_DIR "$real_parts" >"$run/exports.new"
  mv "$run/exports.new" "$run/exports"
  trap - EXIT INT TERM HUP
}

# discard: what could not be started; its logs are kept until the next `up` or `down`.
discard() {
  trap - EXIT
  [[ -z ${cluster:-} ]] || halt QUIT
  [[ ${home:-} != /var/tmp/pull-secret-postgresql.* ]] || rm -rf "$home"
  rm -rf "$run/data"
  say "not started; logs are in $run"
}

stop() {
  existing
  halt INT
  : >"$run/stopped"
}

crash() {
  existing
  end_all
  rm -f "$run/stopped"
}

restart() {
  stop
  launch
}

instance "${2:-}"
cd / # `nobody` may be unable to enter where this is called
(($# <= 2)) || set --
case ${1:-} in
  get) get ;;
  up) up ;;
  down) down ;;
  stop) stop ;;
  crash) crash ;;
  start) start_again ;;
  restart) restart ;;
  *) fail "usage: postgresql.sh get | up [NAME] | down [NAME] | stop [NAME] | crash [NAME] | start [NAME] | restart [NAME]" ;;
esac
