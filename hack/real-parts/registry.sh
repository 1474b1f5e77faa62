#!/usr/bin/env bash
# Gets a real image registry and a client that pulls as people do, and prints an export line for each. Each test starts a registry of
# its own, which takes the tokens of the server of that test.
#
#   e=$(hack/real-parts/registry.sh get) && eval "$e"
#
#     REAL_REGISTRY         the program of distribution's registry
#     REAL_SKOPEO           skopeo, and
#     REAL_SKOPEO_LIBRARIES the LD_LIBRARY_PATH that it needs
#
# The registry is compiled from its Go module, once.
#
#   REAL_PARTS_DIR          where they live instead of ~/.cache/pull-secret/real-parts
part=registry
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

registry_version=3.1.2
registry=$real_parts/registry-$registry_version/registry
skopeo=$real_parts/skopeo-debian-12

get_registry() {
  local module=github.com/distribution/distribution/v3
  begin_go 2000000
  go_build "$(dirname "$registry")" $module "v$registry_version" "-X $module/version.version=v$registry_version" $module/cmd/registry
  end_go
}

# Debian's, with its libraries, as current modules of it cannot be had. Policies and GPG's programs are left out.
get_skopeo() {
  unpack_debian "$skopeo" "adduser golang-github-containers-common golang-github-containers-image gnupg gpg gpgsm dmsetup systemd udev" skopeo
}

get() {
  mkdir -p "$real_parts"
  lock "$real_parts/registry-get.lock" "another run is getting the programs; waiting for it"
  [[ -x $registry ]] || get_registry
  [[ -x $skopeo/usr/bin/skopeo ]] || get_skopeo
  unlock
  printf 'export %s=%q\n' REAL_REGISTRY "$registry" REAL_SKOPEO "$skopeo/usr/bin/skopeo" \
    REAL_SKOPEO_LIBRARIES "$(library_path "$skopeo")"
}

need flock setpriv
[[ ${1:-} == get && $# == 1 ]] || fail "usage: registry.sh get"
get
