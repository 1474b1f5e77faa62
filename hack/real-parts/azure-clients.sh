#!/usr/bin/env bash
# Gets Microsoft's own Key Vault and Entra clients for Python and Node, with which lab/emulators is held to the real services.
#
# They go to target/real-parts/azure; running this again changes nothing.
part=azure-clients
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

parts=$(cd "$(dirname "$0")/../.." && pwd)/target/real-parts/azure
get_python "$parts/python" azure-keyvault-secrets==4.12.0 azure-identity==1.27.0
get_node "$parts/node" @azure/keyvault-secrets@4.12.0 @azure/identity@4.14.1
say "done: $parts"
