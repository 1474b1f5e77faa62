#!/usr/bin/env bash
# The whole life of a secret through gcloud.
#
# usage: gcloud.sh ADDRESS EMPTY_FOLDER
set -euo pipefail

export CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER="http://$1/"
export CLOUDSDK_CONFIG=$2
export CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true
export CLOUDSDK_CORE_PROJECT=fleet-dev
export CLOUDSDK_CORE_DISABLE_PROMPTS=1
export CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=true
export CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=true

secrets() { gcloud secrets "$@" 2>"$CLOUDSDK_CONFIG/stderr" || { cat "$CLOUDSDK_CONFIG/stderr" >&2; return 1; }; }

fail() { echo "gcloud.sh: $*" >&2; exit 1; }

# is WHAT ACTUAL EXPECTED
is() { [[ $2 == "$3" ]] || fail "$1 is [$2], not [$3]"; }

# refused TEXT COMMAND…
refused() {
  local text=$1 output
  shift
  if output=$(gcloud secrets "$@" 2>&1); then fail "gcloud secrets $* was not refused"; fi
  [[ $output == *"$text"* ]] || fail "gcloud secrets $* was refused without [$text]: $output"
}

refused NOT_FOUND describe life
printf hello | secrets create life --replication-policy=automatic --labels=managed-by=hyperfleet --data-file=- >/dev/null
refused "already exists" create life --replication-policy=automatic
is "the first version" "$(secrets versions access 1 --secret=life)" hello
printf world | secrets versions add life --data-file=- >/dev/null
is "the latest version" "$(secrets versions access latest --secret=life)" world
is "the label" "$(secrets describe life --format='value(labels.managed-by)')" hyperfleet
secrets create page --replication-policy=user-managed --locations=europe-west1,europe-west3 >/dev/null
is "the list" "$(secrets list --format='value(name.basename())' | sort | paste -sd,)" life,page
is "the filtered list" "$(secrets list --filter='labels.managed-by=hyperfleet' --format='value(name.basename())')" life

secrets update life --update-annotations=hyperfleet-generation=7 --update-version-aliases=blue=1 >/dev/null
is "the alias" "$(secrets versions access blue --secret=life)" hello
etag=$(secrets describe life --format='value(etag)')
secrets update life --etag="$etag" --update-labels=team=fleet >/dev/null
refused etag update life --etag="$etag" --update-labels=team=other

secrets versions disable 1 --secret=life >/dev/null
refused "is in DISABLED state" versions access 1 --secret=life
secrets versions enable 1 --secret=life >/dev/null
secrets versions destroy 1 --secret=life --quiet >/dev/null
is "the versions" "$(secrets versions list life --format='value(name.basename(),state)' | tr '[:upper:]\t' '[:lower:] ' | paste -sd,)" "2 enabled,1 destroyed"
is "the enabled versions" "$(secrets versions list life --filter=state:ENABLED --format='value(name.basename())')" 2
is "the state" "$(secrets versions describe 1 --secret=life --format='value(state)')" DESTROYED
refused "is in DESTROYED state" versions access 1 --secret=life
secrets delete life --quiet >/dev/null
refused NOT_FOUND describe life
