#!/usr/bin/env bash
# Gets schemathesis, which holds the HyperFleet API to its OpenAPI document, and prints the export line for
# REAL_SCHEMATHESIS:
#
#   e=$(hack/real-parts/schemathesis.sh get) && eval "$e"
#   "$REAL_SCHEMATHESIS" run http://127.0.0.1:8000/api/hyperfleet/v1/openapi
#
# It goes to target/real-parts/schemathesis; running this again changes nothing.
#
#   REAL_SCHEMATHESIS   an existing executable: it is printed as it is
part=schemathesis
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

version=4.32.5
venv=$(cd "$(dirname "$0")/../.." && pwd)/target/real-parts/schemathesis
executable=$venv/bin/schemathesis

# there: whether the wanted version is installed, and whole.
there() { [[ -x $executable && $("$executable" --version 2>/dev/null) == *" $version" ]]; }

get() {
  lock "$venv.lock" "another run is getting it; waiting for it"
  if there; then
    say "$version is there"
    return
  fi
  say "getting $version from PyPI"
  # What is half made, or of another version, is made anew.
  python3 -m venv --clear "$venv" >&2 ||
    fail "python3 cannot make a venv; install its venv module (Debian: python3-venv)"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "schemathesis==$version" >&2 9>&-
  there || fail "it does not run; try: $executable --version"
}

need flock python3
(($# == 1)) || set --
case ${1:-} in
  get)
    if [[ -n ${REAL_SCHEMATHESIS:-} && $(realpath -m "$REAL_SCHEMATHESIS") != "$executable" ]]; then
      [[ -x $REAL_SCHEMATHESIS ]] || fail "REAL_SCHEMATHESIS=$REAL_SCHEMATHESIS cannot be run"
      executable=$REAL_SCHEMATHESIS
    else
      get
    fi
    printf 'export REAL_SCHEMATHESIS=%q\n' "$executable"
    ;;
  *) fail "usage: schemathesis.sh get" ;;
esac
