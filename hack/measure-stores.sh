#!/usr/bin/env bash
# Measures pull-secret with the client of each secret store alone and with all: the size of the program, the same compressed,
# and the most memory of one Job that stores a pull secret there. Prints a table. It builds the program five times.
#
#   hack/real-parts/with.sh openbao moto -- hack/measure-stores.sh
#
# Google's store and Azure's are emulators; what a Job holds does not depend on who answers.
set -euo pipefail

cd "$(dirname "$0")/.."
command -v /usr/bin/time >/dev/null || { echo "measure-stores.sh: /usr/bin/time is missing: apt-get install time" >&2; exit 1; }
: "${REAL_OPENBAO_ADDR:?run it under hack/real-parts/with.sh openbao moto}" "${REAL_MOTO_ADDR:?run it under hack/real-parts/with.sh openbao moto}"
target=${CARGO_TARGET_DIR:-target}
stores=(google vault aws azure)
scratch=$(mktemp -d)
trap 'jobs -p | xargs --no-run-if-empty kill 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT

# build NAME STORE…: leaves the program in the scratch folder.
build() {
  local name=$1
  shift
  cargo build --quiet --locked --release --package pull-secret --no-default-features "${@/#/--features=pull-secret/}"
  cp "$target/release/pull-secret" "$scratch/$name"
}

# emulator NAME: starts it, and sources the variables that it prints.
emulator() {
  "$target/release/pull-secret-local" emulator "$1" >"$scratch/$1.env" 2>"$scratch/$1.log" &
  until grep -q "$2" "$scratch/$1.env"; do
    kill -0 $! || { cat "$scratch/$1.log" >&2 && exit 1; }
    sleep 0.1
  done
  # shellcheck source=/dev/null
  . "$scratch/$1.env"
}

# peak PROGRAM STORE: the most memory of five first runs, in KiB; each has a cluster of its own.
peak() {
  local run
  for run in 1 2 3 4 5; do
    /usr/bin/time --format %M --output "$scratch/kib" env SECRET_STORE="$2" CLUSTER_ID="measured-$1-$run" \
      PULL_SECRET_DATA='{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}' RESULTS_PATH="$scratch/result.json" \
      "$scratch/$1" run-job pull-secret >"$scratch/job.log" 2>&1 || { cat "$scratch/job.log" >&2 && exit 1; }
    cat "$scratch/kib"
  done | sort -n | tail -n 1
}

cargo build --quiet --locked --release --package pull-secret-local
build all "${stores[@]}"
for store in "${stores[@]}"; do build "$store" "$store"; done

emulator secret-manager EMULATOR_HOST
emulator key-vault KEY_VAULT_URL
declare -A place=(
  [google]="GCP_PROJECT_ID=measured-1 SECRET_MANAGER_EMULATOR_HOST=${SECRET_MANAGER_EMULATOR_HOST:-} \
    SECRET_MANAGER_EMULATOR_TOKEN_FILE=${SECRET_MANAGER_EMULATOR_TOKEN_FILE:-}"
  [vault]="VAULT_ADDR=$REAL_OPENBAO_ADDR VAULT_AUTH=token VAULT_TOKEN_FILE=${REAL_OPENBAO_TOKEN_FILE:-}"
  [aws]="AWS_REGION=eu-central-1 AWS_ENDPOINT_URL_SECRETS_MANAGER=$REAL_MOTO_ADDR AWS_EC2_METADATA_DISABLED=true \
    AWS_SHARED_CREDENTIALS_FILE=${REAL_MOTO_CREDENTIALS:-}"
  [azure]="AZURE_API_TIMEOUT=30s"
)
unset SECRET_MANAGER_EMULATOR_HOST SECRET_MANAGER_EMULATOR_TOKEN_FILE

echo "| built for | program | compressed | a Job at it | the same Job of the program with all |"
echo "|---|---|---|---|---|"
mib() { awk -v kib="$1" 'BEGIN { printf "%.1f MiB", kib / 1024 }'; }
size() { mib $(($(stat --format %s "$1") / 1024)); }
for store in all "${stores[@]}"; do
  gzip --best --stdout "$scratch/$store" >"$scratch/$store.gz"
  row="| $store | $(size "$scratch/$store") | $(size "$scratch/$store.gz") |"
  if [[ $store == all ]]; then
    row+=" | |"
  else
    # shellcheck disable=SC2086 # words
    row+=" $(mib "$(export -- ${place[$store]}; peak "$store" "$store")") | $(mib "$(export -- ${place[$store]}; peak all "$store")") |"
  fi
  echo "$row"
done
