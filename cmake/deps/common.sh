# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts of this folder: progress lines, logs, checked archives and prefixes that are
# either complete or absent. Sourced, never run.

TAPER_DEPS_DIR="${TAPER_DEPS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/taper}"
mkdir -p "$TAPER_DEPS_DIR/logs"
TAPER_DEPS_DIR="$(cd "$TAPER_DEPS_DIR" && pwd -P)"
TAPER_DEPS_RECIPE=1 # raise it when build options change: new prefixes are built beside the old ones
export CXX="${CXX:-g++}"

log() { printf '[deps %4ds] %s\n' "$SECONDS" "$*" >&2; }
die() { log "ERROR: $*"; exit 1; }

# step LABEL COMMAND...: runs the command, output into logs/LABEL.log; shows the tail on failure.
step() {
  local label="$1" start=$SECONDS file="$TAPER_DEPS_DIR/logs/$1.log"
  shift
  if ("$@") > "$file" 2>&1 < /dev/null; then
    log "$label: done in $((SECONDS - start)) s"
  else
    local code=$?
    tail -n 40 "$file" >&2
    log "$label: FAILED (exit code $code); the whole log is $file"
    return "$code"
  fi
}

# compiler_key: what makes a binary of ours usable or not, such as gcc12.2.0-x86_64-r1.
compiler_key() {
  local id=gcc version
  if [[ "$("$CXX" -dM -E -x c++ /dev/null 2> /dev/null)" == *__clang__* ]]; then id=clang; fi
  version="$("$CXX" -dumpfullversion 2> /dev/null || "$CXX" -dumpversion)" ||
    die "the compiler '$CXX' does not run (set CXX to another one?)"
  printf '%s%s-%s-r%s' "$id" "$version" "$(uname -m)" "$TAPER_DEPS_RECIPE"
}

# new_work_dir NAME: a folder beside the prefixes (same file system, so the final rename is atomic),
# removed when the script ends, however it ends.
new_work_dir() { mktemp -d "$TAPER_DEPS_DIR/.building-$1.$$.XXXXXX"; }
trap 'rm -rf "$TAPER_DEPS_DIR"/.building-*.$$.*' EXIT

# publish STAGE PREFIX: makes a finished prefix visible in one rename.
publish() {
  [[ -d "$2" ]] || mv -T "$1" "$2" 2> /dev/null || [[ -d "$2" ]] || die "cannot create $2"
}

has_sha() { [[ "$(sha256sum "$1" | cut -d' ' -f1)" == "$2" ]]; }

# from_archives FILE SHA256 FOLDER [OTHER NAMES...]: puts FILE into FOLDER if TAPER_DEPS_ARCHIVES
# has it, under this or another name, intact.
from_archives() {
  local file="$1" sha="$2" folder="$3" name source
  [[ -n "${TAPER_DEPS_ARCHIVES:-}" ]] || return 1
  for name in "$file" "${@:4}"; do
    source="$TAPER_DEPS_ARCHIVES/$name"
    [[ -f "$source" ]] || continue
    if has_sha "$source" "$sha"; then
      cp "$source" "$folder/$file" || return 1
      log "using $source"
      return 0
    fi
    log "$source ignored (its SHA-256 is not $sha)"
  done
  return 1
}

# from_upstream URL FILE SHA256 FOLDER: an upstream release. Unreachable is normal, costs seconds.
from_upstream() {
  command -v curl > /dev/null || return 1
  curl -fsSL --connect-timeout 5 --speed-limit 20000 --speed-time 15 --retry 0 \
    -o "$4/$2" "$1" 2> /dev/null || { rm -f "$4/$2"; return 1; }
  has_sha "$4/$2" "$3" || { log "$1 ignored (SHA-256 differs)"; rm -f "$4/$2"; return 1; }
  log "downloaded $1"
}

# from_debian_source PACKAGE SUITE FILE SHA256 FOLDER: the upstream archive FILE of a Debian source
# package; SUITE is "" or "-backports". Uses an apt world of its own inside FOLDER, whose one source
# is derived from where this machine gets Debian from: the system's lists stay as they are, and no
# root is needed.
from_debian_source() {
  command -v apt-get > /dev/null || return 1
  step "$1-lists" private_apt_update "$5/apt" "$2" || return 1
  step "$1-download" private_apt_source "$5" "$1" || return 1
  has_sha "$5/$3" "$4" || { log "$3 ignored (its SHA-256 is not $4)"; return 1; }
}

private_apt_update() {
  local codename mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg option=""
  codename="$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")"
  mirror="$(apt-get update --print-uris |
    sed -n "s#^'\(.*\)/dists/$codename/InRelease'.*#\1#p" | head -n 1)"
  [[ -n "$codename" && -n "$mirror" ]] || return 1
  if [[ -f $keyring ]]; then option="[signed-by=$keyring]"; fi
  mkdir -p "$1/parts" "$1/lists/partial" "$1/cache/archives/partial"
  printf 'deb-src %s %s %s%s main\n' "$option" "$mirror" "$codename" "$2" > "$1/sources.list"
  private_apt_get "$1" update -o APT::Update::Error-Mode=any
}

private_apt_source() { cd "$1" && private_apt_get "$1/apt" source --download-only --tar-only "$2"; }

private_apt_get() {
  apt-get -o Dir::Etc::SourceList="$1/sources.list" -o Dir::Etc::SourceParts="$1/parts" \
    -o Dir::State::Lists="$1/lists" -o Dir::Cache="$1/cache" -o APT::Sandbox::User=root \
    -o Acquire::Retries=2 "${@:2}"
}

# build_and_install WORK PREFIX LABEL OPTIONS...: WORK/source, configured for PREFIX, ends in
# WORK/stage/PREFIX.
build_and_install() {
  local work="$1" prefix="$2" label="$3" jobs="${TAPER_DEPS_JOBS:-$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)}"
  shift 3
  step "$label-configure" cmake -S "$work/source" -B "$work/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF "$@" || return 1
  step "$label-build" cmake --build "$work/build" --parallel "$jobs" || return 1
  step "$label-install" env DESTDIR="$work/stage" cmake --install "$work/build"
}
