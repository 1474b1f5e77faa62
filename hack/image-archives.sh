#!/usr/bin/env bash
# Assembles the container images without a container tool and without a registry of base images: the binaries, the libraries of
# Debian 12 that they need, and its certificates of authorities. Each is an archive in the OCI layout, which `podman load`,
# `ctr images import` and `skopeo` read; equal inputs give an equal archive.
#
#   image-archives.sh FOLDER OUT [TAG] [NAME…]
#                          FOLDER has the binaries; OUT gets NAME.tar for each NAME, by default all four. Prints a line each:
#                          the reference, its compressed size and the archive. An image above 25 MB is refused.
#
#   IMAGE_REGISTRY         the first part of the references instead of quay.io/openshift-hyperfleet
#   IMAGE_MAX_BYTES        another limit of the compressed size
#   IMAGE_BASE_MAX_DAYS    the age above which Debian's files are got anew, instead of 7 days; 0 gets them anew now
#   REAL_PARTS_DIR         where Debian's files live instead of ~/.cache/pull-secret/real-parts
part=image-archives
# shellcheck source-path=SCRIPTDIR/real-parts source=real-parts/lib.sh
. "$(dirname "$0")/real-parts/lib.sh"

export LC_ALL=C
registry=${IMAGE_REGISTRY:-quay.io/openshift-hyperfleet}
base=$real_parts/image-base-debian-12
certificates=etc/ssl/certs/ca-certificates.crt
most_bytes=${IMAGE_MAX_BYTES:-25000000}
most_days=${IMAGE_BASE_MAX_DAYS:-7}

# updates: this machine's sources of security and other updates of Debian 12, as lines for apt.
updates() {
  # shellcheck disable=SC2016 # apt fills these in
  apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 ~ /^(bookworm|(old)*stable)-(security|updates)$/ && $3 == "main" && !seen[$1 $2]++ {
      sub(/.*-/, "bookworm-", $2); print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]", $1, $2, $3 }'
}

# base_is_new: Debian's files are there, and not too old. Their certificates are written when they are got.
base_is_new() { [[ -n $(find "$base/$certificates" -size +0 -mmin "-$((most_days * 24 * 60))" 2>/dev/null) ]]; }

# get_base: libraries and certificates of Debian 12, whatever this machine has. They are locked until this ends, so that no other
# run replaces them meanwhile.
get_base() {
  local scratch package updates
  lock "$real_parts/image-base-get.lock" "another run is using Debian's files; waiting for it"
  if ! base_is_new; then
    log=$real_parts/$part-get.log
    need apt-get apt-config dpkg-deb
    scratch=$(mktemp -d "$real_parts/$part.XXXXXX")
    # shellcheck disable=SC2064 # expanded now: the trap outlives this function
    trap "end_step; rm -rf '$scratch'" EXIT
    : >"$log"
    say "getting libraries and certificates from Debian; details in $log"
    updates=$(updates)
    [[ $updates == *bookworm-security* ]] ||
      say "apt on this machine has no source bookworm-security: the image gets security updates with Debian's next point release only"
    private_apt "$scratch/apt" deb
    echo "$updates" >>"$scratch/apt/sources.list"
    step apt-get --quiet --error-on=any update
    (cd "$scratch" && step apt-get --quiet download libc6 libgcc-s1 ca-certificates)
    unset APT_CONFIG
    for package in "$scratch"/*.deb; do step dpkg-deb --extract "$package" "$scratch/unpacked"; done
    mkdir -p "$scratch/unpacked/${certificates%/*}"
    cat "$scratch"/unpacked/usr/share/ca-certificates/mozilla/*.crt >"$scratch/unpacked/$certificates"
    say "got $(cd "$scratch" && echo *.deb)"
    rm -rf "$base"
    mv "$scratch/unpacked" "$base"
    rm -rf "$scratch"
    trap - EXIT
  fi
}

# loader BINARY: the path of its program interpreter, such as /lib64/ld-linux-x86-64.so.2.
loader() { readelf --program-headers "$1" | sed -n 's/.*Requesting program interpreter: \(.*\)\]/\1/p'; }

# libraries FILE: the names of the libraries that it needs.
libraries() { readelf --dynamic "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

# of_debian NAME: the path of a library in Debian's files.
of_debian() {
  local found
  found=$(find "$base/lib" "$base/usr/lib" -name "$1" -print -quit)
  [[ -n $found ]] || fail "$1 is needed, which is not among libc6 and libgcc-s1 of Debian 12"
  echo "$found"
}

# put_libraries FILE ROOT: copies what FILE needs, and what that needs, from Debian's files.
put_libraries() {
  local name found
  for name in $(libraries "$1"); do
    [[ ! -e $2/lib/$name ]] || continue
    found=$(of_debian "$name")
    install -D "$found" "$2/lib/$name"
    put_libraries "$found" "$2"
  done
}

# layer NAME BINARY ROOT: the file system of an image; the binary must start in it with no other file of this machine.
layer() {
  local loader root=$3
  loader=$(loader "$2")
  install -D "$2" "$root/usr/local/bin/$1"
  strip --strip-all "$root/usr/local/bin/$1"
  put_libraries "$2" "$root"
  install -D "$(of_debian "${loader##*/}")" "$root$loader"
  install -D --mode 644 "$base/$certificates" "$root/$certificates"
  "$root$loader" --library-path "$root/lib" "$root/usr/local/bin/$1" --version >/dev/null ||
    fail "$2 does not start with Debian 12's libraries; build it on a machine whose libc is not newer than 2.36"
}

# pack FOLDER TAR: an archive that depends neither on who makes it, nor on the umask, nor on the time.
pack() {
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=a-st,u=rwX,go=rX -C "$1" -cf "$2" .
}

# blob FILE: moves it into the layout under its digest, and prints its descriptor's members.
blob() {
  local digest size
  digest=$(sha256sum "$1" | cut -d ' ' -f 1)
  size=$(stat --format %s "$1")
  mv "$1" "$layout/blobs/sha256/$digest"
  echo "\"digest\": \"sha256:$digest\", \"size\": $size"
}

# settings NAME: user, and the arguments that follow the binary, as the Containerfile has them.
settings() {
  case $1 in
    pull-secret) echo '"User": "1000", "Cmd": ["run-job", "pull-secret"]' ;;
    global-pull-secret) echo '"User": "1000", "Cmd": ["run"]' ;;
    sync-global-pullsecret) echo '"User": "0"' ;;
    keyless-credential-provider) echo '"User": "1000"' ;;
    *) fail "the images are pull-secret, global-pull-secret, sync-global-pullsecret and keyless-credential-provider, not $1" ;;
  esac
}

# assemble NAME BINARY REFERENCE ARCHIVE
assemble() {
  local scratch layout layer_id layer config manifest size settings
  settings=$(settings "$1")
  [[ -f $2 ]] || fail "there is no $2; build it with: make build"
  scratch=$(mktemp -d)
  # shellcheck disable=SC2064 # expanded now: the trap outlives this function
  trap "rm -rf '$scratch'" EXIT
  layout=$scratch/layout
  mkdir -p "$layout/blobs/sha256" "$scratch/root"
  layer "$1" "$2" "$scratch/root"
  pack "$scratch/root" "$scratch/layer.tar"
  layer_id=$(sha256sum "$scratch/layer.tar" | cut -d ' ' -f 1)
  gzip --no-name "$scratch/layer.tar"
  size=$(stat --format %s "$scratch/layer.tar.gz")
  ((size <= most_bytes)) || fail "the image of $1 has $size bytes compressed, more than $most_bytes"
  layer=$(blob "$scratch/layer.tar.gz")
  cat >"$scratch/config" <<END
{"architecture": "$(dpkg --print-architecture)", "os": "linux", "config": {"Entrypoint": ["/usr/local/bin/$1"], $settings,
 "Env": ["PATH=/usr/local/bin", "SSL_CERT_FILE=/$certificates"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer_id"]}}
END
  config=$(blob "$scratch/config")
  cat >"$scratch/manifest" <<END
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
 "config": {"mediaType": "application/vnd.oci.image.config.v1+json", $config},
 "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", $layer}]}
END
  manifest=$(blob "$scratch/manifest")
  cat >"$layout/index.json" <<END
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
 {"mediaType": "application/vnd.oci.image.manifest.v1+json", $manifest, "annotations":
  {"io.containerd.image.name": "$3", "org.opencontainers.image.ref.name": "${3##*:}"}}]}
END
  echo '{"imageLayoutVersion": "1.0.0"}' >"$layout/oci-layout"
  pack "$layout" "$4.new"
  mv "$4.new" "$4"
  rm -rf "$scratch"
  trap - EXIT
  printf '%s  %s MB  %s\n' "$3" "$(awk "BEGIN { printf \"%.1f\", $size / 1000000 }")" "$4"
}

[[ $most_days =~ ^(0|[1-9][0-9]{0,3})$ ]] || fail "IMAGE_BASE_MAX_DAYS is a number of days, not $most_days"
(($# >= 2)) || fail "usage: image-archives.sh FOLDER OUT [TAG] [NAME…]"
folder=$1 out=$2 tag=${3:-latest}
names=("${@:4}")
((${#names[@]})) || names=(pull-secret global-pull-secret sync-global-pullsecret keyless-credential-provider)
need flock gzip readelf sha256sum strip tar
mkdir -p "$out"
get_base
for name in "${names[@]}"; do
  assemble "$name" "$folder/$name" "$registry/$name:$tag" "$out/$name.tar"
done
