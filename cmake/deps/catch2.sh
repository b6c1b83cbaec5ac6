# SPDX-License-Identifier: Apache-2.0
# Catch2 3.7.1, for the tests only. bookworm itself has 2.13. Sourced by install.sh.

catch2_version=3.7.1
catch2_upstream="https://github.com/catchorg/Catch2/archive/refs/tags/v3.7.1.tar.gz"
# The source archive in Debian's backports is the upstream one, byte for byte.
catch2_archive=catch2_3.7.1.orig.tar.gz
catch2_sha=c991b247a1a0d7bb9c39aa35faf0fe9e19764213f28ffba3109388e62ee0269c

catch2_source() {
  from_archives "$catch2_archive" "$catch2_sha" "$1" Catch2-3.7.1.tar.gz v3.7.1.tar.gz ||
    from_upstream "$catch2_upstream" "$catch2_archive" "$catch2_sha" "$1" ||
    from_debian_source catch2 -backports "$catch2_archive" "$catch2_sha" "$1" || return 1
  mkdir -p "$1/source"
  tar -xzf "$1/$catch2_archive" -C "$1/source" --strip-components=1
}

install_catch2() {
  local prefix="$1" work
  [[ ! -d "$prefix" ]] || return 0
  work="$(new_work_dir catch2)"
  catch2_source "$work" || die "no source for Catch2 $catch2_version (set TAPER_DEPS_ARCHIVES?)"
  build_and_install "$work" "$prefix" catch2 -DCMAKE_CXX_STANDARD=20 -DCATCH_INSTALL_DOCS=OFF \
    -DBUILD_TESTING=OFF || exit 1
  publish "$work/stage$prefix" "$prefix"
}
