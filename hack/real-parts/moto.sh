#!/usr/bin/env bash
# Gets, starts and ends moto, a stand-in for AWS that others have written: Secrets Manager and STS, throw-away, in memory
# and on loopback. It is got from PyPI, once, into an environment of its own.
#
#   moto.sh get                makes sure that it is there; may download 90 MB, once
#   moto.sh up [NAME]          starts an instance and prints export lines, of which these are for tests:
#                              e=$(hack/real-parts/moto.sh up) && eval "$e"
#                                REAL_MOTO_ADDR      http://127.0.0.1:PORT; any keys will do, and any region
#                                REAL_MOTO_CREDENTIALS  a file with keys, as AWS's programs take it
#                                REAL_MOTO_RUN       the instance's folder, with the server's server.log
#                                REAL_MOTO_SCRIPT    this script's absolute path, and
#                                REAL_MOTO_NAME      NAME, to call it with in order to cause an outage
#   moto.sh down [NAME]        ends it
#
# To take it away and give it back, on the same port:
#
#   moto.sh crash [NAME]       kill -9; all it held is lost
#   moto.sh start [NAME]       starts it again, empty
#   moto.sh pause [NAME]       SIGSTOP: connections stay open and nobody answers
#   moto.sh resume [NAME]      SIGCONT
#
# Each returns when it is done. Running any of them again is harmless: `up` starts an instance again that is not running.
#
#   REAL_MOTO_ADDR             an existing server, if no REAL_MOTO_RUN is with it: `up` starts nothing and prints just that,
#                              with REAL_MOTO_CREDENTIALS
#   REAL_PARTS_DIR             where program and instances live instead of ~/.cache/pull-secret/real-parts
part=moto
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

version=5.2.5
venv=$real_parts/moto-$version

# One request after the other, as AWS decides about writes at the same moment: threads change only where one waits.
server='import sys; sys.setswitchinterval(60); from moto.server import main; main(sys.argv[1:])'

# --- get ---

get() {
  [[ -e $venv/complete ]] && return
  need python3
  mkdir -p "$real_parts"
  lock "$real_parts/moto-get.lock" "another run is getting it; waiting for it"
  if [[ ! -e $venv/complete ]]; then
    log=$real_parts/moto-get.log
    trap end_step EXIT
    : >"$log"
    say "getting moto $version from PyPI, once; details in $log"
    # What is half made is made anew.
    step python3 -m venv --clear "$venv"
    step "$venv/bin/python" -m pip install --disable-pip-version-check --only-binary :all: "moto[server,secretsmanager,sts]==$version"
    touch "$venv/complete"
    trap - EXIT
  fi
  unlock
}

# --- an instance: `run` is its folder, $run/instance tells what it was made with ---

# load: sets port, if there is an instance.
load() {
  # shellcheck disable=SC1091 # written by replace
  [[ -e $run/instance ]] && . "$run/instance"
}

listening() { (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

launch() {
  kill_all # what may be left of it
  start server env -i HOME="$run" "$venv/bin/python" -c "$server" -H 127.0.0.1 -p "$port"
  await "server that listens" listening
}

is_up() { [[ -e $run/exports ]] && alive "$run/server.pid"; }

# --- what can be asked for ---

up() {
  # One that an earlier `up` exported is no existing server: it may have ended since.
  if [[ -n ${REAL_MOTO_ADDR:-} && -z ${REAL_MOTO_RUN:-} ]]; then
    printf 'export %s=%q\n' REAL_MOTO_ADDR "$REAL_MOTO_ADDR" REAL_MOTO_CREDENTIALS "${REAL_MOTO_CREDENTIALS:?}"
    return
  fi
  get
  lock_instance
  if ! is_up; then
    if [[ -e $run/exports ]]; then
      load
      launch
    else
      replace
    fi
    say "'$name' is up at 127.0.0.1:$port"
  fi
  cat "$run/exports"
}

replace() {
  begin
  port=$(free_ports 1)
  printf 'port=%q\n' "$port" >"$run/instance"
  launch
  printf '[default]\naws_access_key_id = any\naws_secret_access_key = any\n' >"$run/credentials"
  keep REAL_MOTO_ADDR "http://127.0.0.1:$port" REAL_MOTO_CREDENTIALS "$run/credentials" REAL_MOTO_RUN "$run" \
    REAL_MOTO_SCRIPT "$script" REAL_MOTO_NAME "$name"
}

instance "${2:-}"
(($# <= 2)) || set --
case ${1:-} in
  get) get ;;
  up) up ;;
  down) down ;;
  crash) existing && kill_all ;;
  start) start_again ;;
  pause) signal server STOP ;;
  resume) signal server CONT ;;
  *) fail "usage: moto.sh get | {up | down | crash | start | pause | resume} [NAME]" ;;
esac
