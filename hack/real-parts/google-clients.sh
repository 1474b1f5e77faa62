#!/usr/bin/env bash
# Gets Google's own Secret Manager clients for Python and Node, with which lab/emulators is held to the real service.
#
# They go to target/real-parts; running this again changes nothing. gcloud cannot be had from a package registry: its test
# runs where it is on the PATH.
set -euo pipefail

python_version=2.32.0
node_version=6.3.0
parts=$(cd "$(dirname "$0")/../.." && pwd)/target/real-parts

say() { echo "google-clients: $*" >&2; }

need() {
  command -v "$1" >/dev/null || { say "$1 is missing; install it and run this again"; exit 1; }
}

need python3
need npm
mkdir -p "$parts/python" "$parts/node"

python=$parts/python/bin/python
want_python="google-cloud-secret-manager==$python_version"
if [[ -x $python ]] && "$python" -m pip freeze 2>/dev/null | grep -qx "$want_python"; then
  say "$want_python is there"
else
  say "getting $want_python"
  python3 -m venv "$parts/python" || { say "python3 cannot make a venv; install its venv module (Debian: python3-venv)"; exit 1; }
  "$python" -m pip install --quiet --disable-pip-version-check "$want_python" >&2
fi

manifest=$parts/node/node_modules/@google-cloud/secret-manager/package.json
if [[ -f $manifest ]] && grep -q "\"version\": \"$node_version\"" "$manifest"; then
  say "@google-cloud/secret-manager@$node_version is there"
else
  say "getting @google-cloud/secret-manager@$node_version"
  [[ -f $parts/node/package.json ]] || echo '{"private": true}' >"$parts/node/package.json"
  npm install --prefix "$parts/node" --no-audit --no-fund --loglevel=error "@google-cloud/secret-manager@$node_version" >&2
fi
say "done: $parts"
