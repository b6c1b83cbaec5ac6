# SPDX-License-Identifier: Apache-2.0
# Kokkos 4.5.01: for the host (OpenMP + Serial) and, on request, with the CUDA back end. Debian's
# own Kokkos is too old. No Kokkos_ARCH is set for the host: the library then runs on any node of a
# cluster, and Taper's own instruction sets are chosen by Taper's options. Sourced by install.sh.

kokkos_version=4.5.01
kokkos_upstream="https://github.com/kokkos/kokkos/releases/download/4.5.01/kokkos-4.5.01.tar.gz"
kokkos_sha=52d003ffbbe05f30c89966e4009c017efb1662b02b2b73190670d3418719564c
# This source package on PyPI holds the same Kokkos in its folder kokkos/.
pycompadre_version=1.7.6
pycompadre_sha=c766ec4d445ce076069be4b8c51a23ffac4ee79ea949ca86446bfd8c299b154c

# pip looks at a source package's metadata, which runs its setup.py: hence pip itself checks the
# hash, before that, and setuptools, packaging and numpy must be there.
download_pycompadre() {
  printf 'pycompadre==%s --hash=sha256:%s\n' "$pycompadre_version" "$pycompadre_sha" > "$1/pin.txt"
  "${PYTHON:-python3}" -m venv "$1/venv" &&
    "$1/venv/bin/pip" install -q setuptools wheel packaging numpy &&
    "$1/venv/bin/pip" download -q --no-deps --no-binary :all: --no-build-isolation \
      --require-hashes -d "$1" -r "$1/pin.txt"
}

# kokkos_source WORK: leaves the source in WORK/source.
kokkos_source() {
  local work="$1" release="kokkos-$kokkos_version.tar.gz"
  local pypi="pycompadre-$pycompadre_version"
  from_archives "$release" "$kokkos_sha" "$work" ||
    from_archives "$pypi.tar.gz" "$pycompadre_sha" "$work" ||
    from_upstream "$kokkos_upstream" "$release" "$kokkos_sha" "$work" ||
    step kokkos-download download_pycompadre "$work" || return 1
  mkdir -p "$work/source"
  if [[ -f "$work/$release" ]]; then
    tar -xzf "$work/$release" -C "$work/source" --strip-components=1
  else
    tar -xzf "$work/$pypi.tar.gz" -C "$work/source" --strip-components=2 "$pypi/kokkos"
  fi
}

# install_kokkos PREFIX [OPTIONS...]: further options go to CMake.
install_kokkos() {
  local prefix="$1" work
  shift
  [[ ! -d "$prefix" ]] || return 0
  work="$(new_work_dir kokkos)"
  kokkos_source "$work" || die "no source for Kokkos $kokkos_version (set TAPER_DEPS_ARCHIVES?)"
  build_and_install "$work" "$prefix" kokkos \
    -DCMAKE_CXX_STANDARD=20 -DKokkos_ENABLE_OPENMP=ON -DKokkos_ENABLE_SERIAL=ON \
    "${@//@SOURCE@/$work/source}" || exit 1
  if [[ -f "$work/stage$prefix/bin/nvcc_wrapper" && $with_cuda == yes ]]; then
    finish_cuda_prefix "$work" "$prefix"
  fi
  publish "$work/stage$prefix" "$prefix"
}
