#!/usr/bin/env bash
# Gets, starts and ends a real RabbitMQ, throw-away and on loopback, user guest, password guest. What is installed is used,
# else Debian's packages are unpacked beside the system.
#
#   rabbitmq.sh get                makes sure that the programs are there; may download 40 MB, once
#   rabbitmq.sh up [NAME]          starts an instance and prints export lines, of which these are for tests:
#                                  e=$(hack/real-parts/rabbitmq.sh up) && eval "$e"
#                                    REAL_RABBITMQ_URL      amqp://guest:guest@127.0.0.1:PORT/%2f
#                                    REAL_RABBITMQ_CTL      rabbitmqctl for this instance, as an absolute path
#                                    REAL_RABBITMQ_RUN      the instance's folder, with the server's server.log
#                                    REAL_RABBITMQ_SCRIPT   this script's absolute path, and
#                                    REAL_RABBITMQ_NAME     NAME, to call it with in order to cause an outage
#   rabbitmq.sh down [NAME]        ends it and removes its data
#
# To take the broker away and give it back, on the same port and with the same data:
#
#   rabbitmq.sh stop [NAME]        orderly shutdown: connections are closed, what is durable is kept
#   rabbitmq.sh crash [NAME]       kill -9; what was confirmed is kept all the same
#   rabbitmq.sh start [NAME]       starts it again after either
#   rabbitmq.sh restart [NAME]     stop and start
#   rabbitmq.sh pause [NAME]       SIGSTOP: connections stay open and nobody answers
#   rabbitmq.sh resume [NAME]      SIGCONT
#
# Each returns when it is done. Running any of them again is harmless: `up` starts an instance again that is not running.
#
#   REAL_RABBITMQ_URL              an existing broker, if no REAL_RABBITMQ_RUN is with it: `up` starts nothing and prints
#                                  just that
#   REAL_PARTS_IGNORE_INSTALLED=1  does as if nothing were installed
#   REAL_PARTS_DIR                 where programs and instances live instead of ~/.cache/pull-secret/real-parts
part=rabbitmq
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

debian=3.10 # what Debian 12 has
unpacked=$real_parts/rabbitmq-$debian

# --- get ---

# get: sets `root` to the folder that the programs were unpacked into, or to nothing if they are installed.
get() {
  getent hosts localhost >/dev/null || fail "the name localhost is not in /etc/hosts, which Erlang needs"
  root=
  [[ -z ${REAL_PARTS_IGNORE_INSTALLED:-} && -x /usr/lib/rabbitmq/bin/rabbitmq-server ]] && type -P erl epmd >/dev/null && return
  root=$unpacked
  [[ -x $root/usr/lib/rabbitmq/bin/rabbitmq-server ]] && return
  mkdir -p "$real_parts"
  lock "$real_parts/rabbitmq-get.lock" "another run is getting the programs; waiting for it"
  # It runs as whoever calls this, in the foreground.
  [[ -x $root/usr/lib/rabbitmq/bin/rabbitmq-server ]] ||
    unpack_debian "$unpacked" "adduser logrotate lsb-base socat locales" rabbitmq-server
  unlock
}

# --- an instance: `run` is its folder, $run/instance tells what it was made with ---

# load: sets root, port, mapper and distribution, if there is an instance.
load() {
  # shellcheck disable=SC1091 # written by create
  [[ -e $run/instance ]] && . "$run/instance"
}

# create: a new, empty instance.
create() {
  local erlang
  read -r port mapper distribution <<<"$(free_ports 3)"
  printf '%s=%q\n' root "$root" port "$port" mapper "$mapper" distribution "$distribution" >"$run/instance"
  printf '%s\n' "listeners.tcp.1 = 127.0.0.1:$port" 'log.console = true' 'log.file = false' >"$run/rabbitmq.conf"
  echo '[].' >"$run/enabled_plugins"
  : >"$run/rabbitmq-env.conf"
  mkdir "$run/bin"
  if [[ -n $root ]]; then
    # Debian's own `erl` and the like know only the place that they are installed to.
    erlang=$root/usr/lib/erlang
    printf '#!/bin/sh\nexport ROOTDIR=%q BINDIR=%q EMU=beam PROGNAME=erl\nexec %q "$@"\n' \
      "$erlang" "$(echo "$erlang"/erts-*/bin)" "$(echo "$erlang"/erts-*/bin/erlexec)" >"$run/bin/erl"
    ln -s "$(echo "$erlang"/erts-*/bin/epmd)" "$run/bin/epmd"
    chmod +x "$run/bin/erl"
  fi
  settings
  {
    printf '#!/bin/sh\nexec'
    printf ' %q' "${settings[@]}" "$root/usr/lib/rabbitmq/bin/rabbitmqctl"
    printf ' "$@"\n'
  } >"$run/bin/rabbitmqctl"
  chmod +x "$run/bin/rabbitmqctl"
}

# settings: sets `settings` to the words that server and tools are run with. Every listener stays on loopback.
settings() {
  settings=(env -i PATH="$run/bin:$PATH" HOME="$run" LC_ALL=C.UTF-8 ${root:+LD_LIBRARY_PATH="$(library_path "$root")"}
    RABBITMQ_NODENAME="$part-$name-$mapper@localhost" RABBITMQ_CONF_ENV_FILE="$run/rabbitmq-env.conf"
    RABBITMQ_CONFIG_FILE="$run/rabbitmq.conf" RABBITMQ_ENABLED_PLUGINS_FILE="$run/enabled_plugins"
    RABBITMQ_MNESIA_BASE="$run/mnesia" RABBITMQ_LOG_BASE="$run/log" RABBITMQ_LOGS=- RABBITMQ_PID_FILE="$run/broker"
    RABBITMQ_DIST_PORT="$distribution" ERL_EPMD_PORT="$mapper" ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_ALLOW_INPUT=1
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-noinput -kernel inet_dist_use_interface {127,0,0,1}')
}

listening() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# launch: starts the broker with the data it has, and waits until it takes connections.
launch() {
  settings
  kill_all # what may be left of it
  # A port mapper of our own: else the server starts one that outlives it.
  start epmd "${settings[@]}" epmd -address 127.0.0.1 -port "$mapper"
  await "port mapper" listening "$mapper"
  start server "${settings[@]}" "$root/usr/lib/rabbitmq/bin/rabbitmq-server"
  await "broker that takes connections" listening "$port"
}

# halt: orderly; whatever has not ended after 30 seconds is killed.
halt() {
  local pid end=$((SECONDS + 30))
  if alive "$run/server.pid"; then
    read -r pid _ <"$run/server.pid"
    kill -s CONT "$pid" 2>/dev/null || true
    kill -s TERM "$pid" 2>/dev/null || true
    while alive "$run/server.pid" && ((SECONDS < end)); do sleep 0.05; done
  fi
  kill_all
}

is_up() { [[ -e $run/exports ]] && alive "$run/server.pid"; }

# --- what can be asked for ---

up() {
  local began took
  # One that an earlier `up` exported is no existing broker: it may have ended since.
  if [[ -n ${REAL_RABBITMQ_URL:-} && -z ${REAL_RABBITMQ_RUN:-} ]]; then
    printf 'export REAL_RABBITMQ_URL=%q\n' "$REAL_RABBITMQ_URL"
    return
  fi
  get
  lock_instance
  if ! is_up; then
    began=${EPOCHREALTIME/[.,]/}
    if [[ -e $run/exports ]]; then
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
  begin
  create
  launch
  keep REAL_RABBITMQ_URL "amqp://guest:guest@127.0.0.1:$port/%2f" \
    REAL_RABBITMQ_CTL "$run/bin/rabbitmqctl" REAL_RABBITMQ_RUN "$run" REAL_RABBITMQ_SCRIPT "$script" \
    REAL_RABBITMQ_NAME "$name"
}

instance "${2:-}"
need getent
(($# <= 2)) || set --
case ${1:-} in
  get) get ;;
  up) up ;;
  down) down ;;
  stop) existing && halt ;;
  crash) existing && kill_all ;;
  start) start_again ;;
  restart) existing && halt && launch ;;
  pause) signal server STOP ;;
  resume) signal server CONT ;;
  *) fail "usage: rabbitmq.sh get | {up | down | stop | crash | start | restart | pause | resume} [NAME]" ;;
esac
