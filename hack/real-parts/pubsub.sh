#!/usr/bin/env bash
# Starts and ends Google's own Pub/Sub emulator, throw-away and on loopback. It comes with gcloud (component
# pubsub-emulator) and needs a JDK, which compiles InternalStatus.java, a cure for it; no package registry has it, so where
# gcloud does not bring it, it cannot be had: then this says so in one line, prints REAL_PUBSUB_ABSENT with the reason, and
# ends well.
#
#   pubsub.sh up [NAME]        starts an instance and prints export lines, of which these are for tests:
#                              e=$(hack/real-parts/pubsub.sh up) && eval "$e"
#                                REAL_PUBSUB_HOST      127.0.0.1:PORT; any project will do
#                                REAL_PUBSUB_RUN       the instance's folder, with the emulator's emulator.log
#                                REAL_PUBSUB_SCRIPT    this script's absolute path, and
#                                REAL_PUBSUB_NAME      NAME, to call it with in order to cause an outage
#   pubsub.sh down [NAME]      ends it
#
# To take it away and give it back, on the same port:
#
#   pubsub.sh pause [NAME]     SIGSTOP: connections stay open and nobody answers
#   pubsub.sh resume [NAME]    SIGCONT
#   pubsub.sh crash [NAME]     kill -9
#   pubsub.sh start [NAME]     starts it again; nothing survives, as it keeps everything in memory
#
#   REAL_PUBSUB_HOST           an existing emulator, if no REAL_PUBSUB_RUN is with it: `up` prints just that
#   PUBSUB_EMULATOR_JAR        the emulator's jar, where gcloud does not know it
#   REAL_PARTS_DIR             where instances live instead of ~/.cache/pull-secret/real-parts
part=pubsub
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

absent() {
  say "Google's Pub/Sub emulator cannot be had: $*"
  printf 'export REAL_PUBSUB_ABSENT=%q\n' "$*"
  exit 0
}

# find_jar: sets `jar`.
find_jar() {
  local scratch sdk
  jar=${PUBSUB_EMULATOR_JAR:-}
  if [[ -z $jar ]]; then
    type -P gcloud >/dev/null || absent "there is no gcloud on this machine"
    scratch=$(mktemp -d) # gcloud writes its settings somewhere
    sdk=$(CLOUDSDK_CONFIG=$scratch CLOUDSDK_CORE_DISABLE_PROMPTS=1 CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=true \
      gcloud info --format='value(installation.sdk_root)' 2>/dev/null) || sdk=
    rm -rf "$scratch"
    for jar in "${sdk:-/nowhere}"/platform/pubsub-emulator/lib/cloud-pubsub-emulator-*.jar; do :; done
  fi
  [[ -r $jar ]] || absent "gcloud has no component pubsub-emulator"
  type -P java javac >/dev/null || absent "there is no JDK on this machine"
}

# load: sets jar and at, if there is an instance.
load() {
  # shellcheck disable=SC1091 # written by up
  [[ -e $run/instance ]] && . "$run/instance"
}

launch() {
  kill_all
  : >"$run/emulator.log"
  start emulator java -XX:+UseSerialGC -Xmx256m -cp "$run/classes:$jar" com.google.cloud.pubsub.testing.v1.Main \
    --host=127.0.0.1 --port="$at"
  await "emulator that is ready" grep -q 'Server started' "$run/emulator.log"
}

is_up() { [[ -e $run/exports ]] && alive "$run/emulator.pid"; }

up() {
  local began took
  if [[ -n ${REAL_PUBSUB_HOST:-} && -z ${REAL_PUBSUB_RUN:-} ]]; then
    printf 'export REAL_PUBSUB_HOST=%q\n' "$REAL_PUBSUB_HOST"
    return
  fi
  lock_instance
  if ! is_up; then
    if ! load; then
      find_jar
      (umask 077 && mkdir -p "$run")
      javac -cp "$jar" -d "$run/classes" "$(dirname "$script")/InternalStatus.java" 2>"$run/javac.log" ||
        fail "InternalStatus.java does not compile against $jar; see $run/javac.log"
      at=$(free_ports 1)
      printf '%s=%q\n' jar "$jar" at "$at" >"$run/instance"
    fi
    began=${EPOCHREALTIME/[.,]/}
    trap 'kill_all; say "not started; logs are in $run"' EXIT
    launch
    printf 'export %s=%q\n' REAL_PUBSUB_HOST "127.0.0.1:$at" REAL_PUBSUB_RUN "$run" REAL_PUBSUB_SCRIPT "$script" \
      REAL_PUBSUB_NAME "$name" REAL_PARTS_DIR "$real_parts" >"$run/exports"
    trap - EXIT
    took=$(((${EPOCHREALTIME/[.,]/} - began) / 100000))
    say "'$name' is up after $((took / 10)).$((took % 10)) s at 127.0.0.1:$at"
  fi
  cat "$run/exports"
}

instance "${2:-}"
mkdir -p "$real_parts/run"
(($# <= 2)) || set --
case ${1:-} in
  up) up ;;
  down) down ;;
  crash) existing && kill_all ;;
  start) start_again ;;
  pause) signal emulator STOP ;;
  resume) signal emulator CONT ;;
  *) fail "usage: pubsub.sh {up | down | crash | start | pause | resume} [NAME]" ;;
esac
