#!/usr/bin/env bash
# Runs a command with HashiCorp's own server in place of OpenBao: in development mode, on loopback, and nothing of it is kept.
#
#   hack/hashicorp-vault.sh cargo test --package secret-store --features vault,google,aws,azure --test store -- hashicorp
#   hack/hashicorp-vault.sh cargo test --package pull-secret --test program -- vault:: stores::
#
# It is no part of `make test`, which has OpenBao behind a proxy with HashiCorp's differences instead: the server is built from its Go
# module, once, which takes ten minutes.
part=hashicorp-vault
# shellcheck source-path=SCRIPTDIR source=real-parts/lib.sh
. "$(dirname "$0")/real-parts/lib.sh"

version=1.21.4
vault=$real_parts/hashicorp-vault-$version/vault

get() {
  local source
  [[ -x $vault ]] && return
  need go
  lock "$real_parts/hashicorp-vault-get.lock" "another run is building the server; waiting for it"
  if [[ ! -x $vault ]]; then
    log=$real_parts/hashicorp-vault-get.log
    : >"$log"
    trap end_step EXIT
    say "building Vault $version, once; this takes ten minutes, details in $log"
    step go mod download "github.com/hashicorp/vault@v$version"
    source=$(dirname "$vault")/source
    rm -rf "$source"
    mkdir -p "$source"
    cp -r "$(go env GOMODCACHE)/github.com/hashicorp/vault@v$version/." "$source"
    chmod -R u+w "$source"
    release "$source"
    step env -C "$source" GOFLAGS=-mod=mod CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$vault" .
    rm -rf "$source"
    trap - EXIT
  fi
  unlock
}

# release FOLDER: the module names folders of its repository, which its archive lacks; their releases differ in two functions
# that secrets have no part in.
release() {
  local module
  for module in api api/auth/{approle,kubernetes,userpass} sdk; do
    go mod edit -dropreplace "github.com/hashicorp/vault/$module" "$1/go.mod"
  done
  sed -i 's/activateDeduplication(ctx context.Context, req \*logical.Request) error/activateDeduplication(ctx context.Context, req *logical.Request, _ string) error/' "$1/vault/identity_store_util.go"
  sed -i 's/ActivationFunc(ctx, nil)/ActivationFunc(ctx, nil, "")/' "$1/vault/logical_system_activation_flags.go"
  sed -i 's/restoredKeyName, err := b.lm.RestorePolicy/restoredKeyName := keyName\n\terr := b.lm.RestorePolicy/' "$1/builtin/logical/transit/path_restore.go"
}

(($#)) || fail "name the command to run; see the first lines of $0"
get
run=$(mktemp -d)
read -r port <<<"$(free_ports 1)"
token=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
printf %s "$token" >"$run/token"
# By the environment: a command line can be read by others.
VAULT_DEV_ROOT_TOKEN_ID=$token "$vault" server -dev -dev-listen-address="127.0.0.1:$port" -dev-no-store-token >"$run/server.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" || true; rm -rf "$run"' EXIT
for _ in {1..100}; do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  kill -0 "$server" 2>/dev/null || { cat "$run/server.log" >&2; fail "the server has ended"; }
  sleep 0.2
done
printf '#!/bin/sh\nVAULT_ADDR=%q VAULT_TOKEN=$(cat %q) exec %q "$@"\n' "http://127.0.0.1:$port" "$run/token" "$vault" >"$run/cli"
chmod +x "$run/cli"
REAL_OPENBAO_ADDR=http://127.0.0.1:$port REAL_OPENBAO_TOKEN_FILE=$run/token REAL_OPENBAO_CLI=$run/cli "$@"
