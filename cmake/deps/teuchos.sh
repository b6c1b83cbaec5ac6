# SPDX-License-Identifier: Apache-2.0
# Teuchos (Core, Parser, ParameterList) out of Trilinos 13.2.0. Built without MPI:
# ParameterList needs none, so the library fits any MPI. Debian's binary packages are linked to Open
# MPI and would mix two MPIs. Sourced by install.sh.

teuchos_version=13.2.0
teuchos_tag=trilinos-release-13-2-0
teuchos_upstream="https://github.com/trilinos/Trilinos/archive/refs/tags/$teuchos_tag.tar.gz"
# Debian's source archive is the upstream one, byte for byte, under another name.
teuchos_archive=trilinos_13.2.0.orig.tar.gz
teuchos_sha=0ddb47784ba7b8a6b9a07a4822b33be508feb4ccd54301b2a5d10c9e54524b90

trilinos_archive() {
  from_archives "$teuchos_archive" "$teuchos_sha" "$1" "$teuchos_tag.tar.gz" ||
    from_upstream "$teuchos_upstream" "$teuchos_archive" "$teuchos_sha" "$1" ||
    from_debian_source trilinos "" "$teuchos_archive" "$teuchos_sha" "$1"
}

# Of 55,000 files only Teuchos and what TriBITS reads while configuring are unpacked. One
# constructor in 13.2.0 is spelled in a way that C++20 refuses.
unpack_teuchos() {
  mkdir -p "$1/source"
  tar -xzf "$1/$teuchos_archive" -C "$1/source" --strip-components=1 --wildcards \
    '*/packages/teuchos' 'Trilinos-*/cmake' '*.cmake' '*/CMakeLists.txt' &&
    tar -xzf "$1/$teuchos_archive" -C "$1/source" --strip-components=1 --wildcards \
      --no-wildcards-match-slash --exclude='*/packages' --exclude='*/doc' 'Trilinos-*/*' &&
    sed -i 's/^  AbstractArrayValidator<ValidatorType, EntryType>();/  AbstractArrayValidator();/' \
      "$1/source/packages/teuchos/parameterlist/src/Teuchos_StandardParameterEntryValidators.hpp"
}

install_teuchos() {
  local prefix="$1" work
  [[ ! -d "$prefix" ]] || return 0
  work="$(new_work_dir teuchos)"
  trilinos_archive "$work" ||
    die "no source for Teuchos $teuchos_version (set TAPER_DEPS_ARCHIVES?)"
  step teuchos-unpack unpack_teuchos "$work" || exit 1
  build_and_install "$work" "$prefix" teuchos \
    -DCMAKE_CXX_STANDARD=17 -DTPL_ENABLE_MPI=OFF -DTrilinos_ENABLE_Fortran=OFF \
    -DTrilinos_ENABLE_ALL_OPTIONAL_PACKAGES=OFF -DTrilinos_ENABLE_TeuchosParameterList=ON \
    -DTrilinos_ENABLE_TESTS=OFF -DTrilinos_ENABLE_EXAMPLES=OFF \
    -DTPL_ENABLE_BLAS=OFF -DTPL_ENABLE_LAPACK=OFF -DTPL_ENABLE_DLlib=OFF \
    -DTrilinos_ENABLE_INSTALL_CMAKE_CONFIG_FILES=ON || exit 1
  publish "$work/stage$prefix" "$prefix"
}
