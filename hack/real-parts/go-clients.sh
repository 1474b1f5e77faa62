#!/usr/bin/env bash
# Builds the Go programs of lab/interop/go, by which this project is held to the Go clients that meet it: Google's Secret
# Manager, Watermill with CloudEvents, client-go.
#
# They go to target/real-parts/go; running this again builds what has changed. It needs Go.
part=go-clients
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

root=$(cd "$(dirname "$0")/../.." && pwd)
programs=$root/target/real-parts/go

type -P go >/dev/null || fail "Go 1.26 or newer is needed to build lab/interop/go, see https://go.dev/dl"
need flock
lock "$programs.lock" "another run is building them; waiting for it"
mkdir -p "$programs"
cd "$root/lab/interop/go"
began=$SECONDS
CGO_ENABLED=0 go build -mod=readonly -trimpath -o "$programs/" ./... 9>&- >&2
touch "$programs"/* # go leaves alone what is up to date; the tests refuse programs that are older than their sources
say "built in $((SECONDS - began)) s: $programs"
