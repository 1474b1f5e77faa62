#!/usr/bin/env bash
# Gets a headless Chromium for looking at pages, and prints the export line for REAL_CHROMIUM:
#
#   e=$(hack/real-parts/chromium.sh get) && eval "$e"
#   "$REAL_CHROMIUM" --screenshot=page.png --window-size=1200,800 http://127.0.0.1:8080/
#   "$REAL_CHROMIUM" --dump-dom http://127.0.0.1:8080/
#
# That is a script which adds what is needed and becomes the browser, so whoever kills it kills the browser. Each run has
# a profile of its own. What is installed is used, else Debian's packages are unpacked beside the system: a download of
# 134 MB, once. Running this again is harmless.
#
#   REAL_CHROMIUM                  an existing executable that takes Chromium's options: it is printed as it is
#   REAL_PARTS_IGNORE_INSTALLED=1  does as if nothing were installed
#   REAL_PARTS_DIR                 where it lives instead of ~/.cache/pull-secret/real-parts
part=chromium
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

unpacked=$real_parts/chromium-debian-12

# get: sets `chromium` to the script that runs it.
get() {
  local candidate executable
  mkdir -p "$real_parts"
  lock "$real_parts/chromium-get.lock" "another run is getting it; waiting for it"
  if [[ -z ${REAL_PARTS_IGNORE_INSTALLED:-} ]]; then
    for candidate in chromium google-chrome google-chrome-stable chromium-browser; do
      executable=$(type -P "$candidate") || continue
      chromium=$real_parts/chromium-installed
      wrap "$executable" && return
      say "$executable is not used: it makes no screenshot" # a snap, for one, cannot write everywhere
    done
  fi
  chromium=$real_parts/chromium-unpacked
  # What belongs to a desktop is not needed without a window.
  [[ -x $unpacked/usr/lib/chromium/chromium ]] || unpack_debian "$unpacked" \
    "libgtk-3-0 xdg-desktop-portal-gtk x11-utils xdg-utils" chromium fonts-dejavu-core fonts-liberation
  cat >"$unpacked/fonts.conf" <<END
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>$unpacked/usr/share/fonts</dir>
  <cachedir>$unpacked/fontconfig</cachedir>
$(shown_in sans-serif 'DejaVu Sans' system-ui)
$(shown_in serif 'DejaVu Serif')
$(shown_in monospace 'DejaVu Sans Mono' ui-monospace)
$(shown_in 'Liberation Sans' 'Liberation Sans' Arial Helvetica)
</fontconfig>
END
  wrap "$unpacked/usr/lib/chromium/chromium" \
    LD_LIBRARY_PATH="$(library_path "$unpacked")" FONTCONFIG_FILE="$unpacked/fonts.conf" ||
    fail "it makes no screenshot; see $real_parts/chromium-try.log"
}

# shown_in NAME FONT OTHER…: shows NAME and OTHER in FONT; fontconfig's own rules are not there.
shown_in() {
  local family font=$2
  for family in "$1" "${@:3}"; do
    echo "  <match><test name=\"family\"><string>$family</string></test>" \
      "<edit name=\"family\" mode=\"append\" binding=\"same\"><string>$font</string></edit></match>"
  done
}

# wrap EXECUTABLE VARIABLE=VALUE…: writes $chromium and, if it is a new one, tries it.
wrap() {
  local executable=$1 profiles=$real_parts/chromium-profiles
  shift
  {
    printf '#!/usr/bin/env bash\n# %s\n' "$executable"
    printf 'profiles=%q executable=%q\n' "$profiles" "$executable"
    (($# == 0)) || printf 'export %q\n' "$@"
    cat <<'END'
set -euo pipefail
for profile in "$profiles"/*; do # of runs that have ended
  [[ -d /proc/${profile##*/} ]] || rm -rf "$profile"
done
mkdir -p "$profiles/$$"
# Nothing in the home folder is read or written.
export XDG_CONFIG_HOME=$profiles/$$ XDG_CACHE_HOME=$profiles/$$ GSETTINGS_BACKEND=memory
options=(--headless --disable-gpu --disable-dev-shm-usage --hide-scrollbars --force-color-profile=srgb --no-first-run
  --disable-extensions --disable-background-networking --disable-component-update --disable-sync --disable-breakpad
  --log-level=3) # or it complains about every service of a desktop
# The pages are our own; as root, and where there are no user namespaces, it does not start otherwise. A "test" is not
# given a bar about that, which would take room from the page.
if ((EUID == 0)) || ! unshare --user true 2>/dev/null; then options+=(--no-sandbox --test-type); fi
exec "$executable" "${options[@]}" --user-data-dir="$profiles/$$" "$@"
END
  } >"$chromium.new"
  chmod +x "$chromium.new"
  cmp -s "$chromium.new" "$chromium" || tried "$chromium.new" || return
  mv "$chromium.new" "$chromium"
}

tried() {
  local picture=$real_parts/chromium-try.png
  rm -f "$picture"
  timeout -k 5 60 "$1" --screenshot="$picture" --window-size=100,100 'data:text/html,<p>there' \
    </dev/null >"$real_parts/chromium-try.log" 2>&1 9>&- || return 1
  [[ -s $picture ]] && rm "$picture"
}

need flock setpriv
(($# == 1)) || set --
case ${1:-} in
  get)
    if [[ -n ${REAL_CHROMIUM:-} && $(realpath -m "$REAL_CHROMIUM") != "$real_parts"/* ]]; then
      [[ -x $REAL_CHROMIUM ]] || fail "REAL_CHROMIUM=$REAL_CHROMIUM cannot be run"
      chromium=$REAL_CHROMIUM
    else
      get
    fi
    printf 'export REAL_CHROMIUM=%q\n' "$chromium"
    ;;
  *) fail "usage: chromium.sh get" ;;
esac
