#!/usr/bin/env bash
# Gets Google's own Secret Manager clients for Python and Node, with which lab/emulators is held to the real service.
#
# They go to target/real-parts; running this again changes nothing. gcloud cannot be had from a package registry: its test
# runs where it is on the PATH.
part=google-clients
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

parts=$(cd "$(dirname "$0")/../.." && pwd)/target/real-parts
get_python "$parts/python" google-cloud-secret-manager==2.32.0
get_node "$parts/node" @google-cloud/secret-manager@6.3.0
say "done: $parts"
