#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes Taper's dependencies available and tells the shell where they are:
#
#   eval "$(cmake/deps/install.sh)"            # progress on stderr, export lines on stdout
#
# For each of Kokkos, Teuchos, minja, Catch2 the first of these that works is taken: what CMake finds
# already (modules, Spack, CMAKE_PREFIX_PATH), an archive in $TAPER_DEPS_ARCHIVES, the upstream
# release, the package registries this machine is configured for. Built once per compiler, outside
# the source tree; a second call takes less than a second. Nothing of it enters the repository.
set -euo pipefail

usage() {
  cat << 'END'
usage: install.sh [--cuda] [--python] [--tests] [--prefix-only]
  --cuda         use a Kokkos with the CUDA back end instead of the host one (needs nvcc)
  --python       also a virtual environment with h5py, numpy, matplotlib, pyyaml,
                 safetensors
  --tests        also Slurm for the tests of the job scripts, on Debian and as root
  --prefix-only  leave the system's packages alone
environment:
  TAPER_DEPS_DIR       where prefixes, logs and env-*.sh go (default: ~/.cache/taper)
  TAPER_DEPS_ARCHIVES  folder with source archives, for machines without a network
  TAPER_DEPS_JOBS      parallel jobs of the builds (default: all cores)
  TAPER_CUDA_SM        GPU architecture for --cuda: 80, 86, 89, 90 (default: 90)
  CXX, PYTHON          compiler (default g++) and interpreter (default python3)
END
}

with_cuda=no with_python=no with_tests=no with_system=yes
for argument in "$@"; do
  case "$argument" in
    --cuda) with_cuda=yes ;;
    --python) with_python=yes ;;
    --tests) with_tests=yes ;;
    --prefix-only) with_system=no ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'install.sh: unknown argument %s\n' "$argument" >&2; usage >&2; exit 2 ;;
  esac
done

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
for part in common system probe kokkos cuda teuchos minja catch2 python; do
  source "$here/$part.sh"
done

[[ $with_system == no ]] || install_system_packages || exit 1
[[ $with_system == no || $with_tests == no ]] || install_test_packages

# One builder at a time; others wait here and then find everything done. Who holds the lock may
# clear away what a killed call left.
exec 9> "$TAPER_DEPS_DIR/.lock"
flock -n 9 2> /dev/null || log "waiting for another install.sh in $TAPER_DEPS_DIR"
if flock 9 2> /dev/null; then
  rm -rf "$TAPER_DEPS_DIR"/.building-*
else
  log "no file locks in $TAPER_DEPS_DIR, going on without"
fi

key="$(compiler_key)"
kokkos_prefix="$TAPER_DEPS_DIR/kokkos-$kokkos_version-$key"
teuchos_prefix="$TAPER_DEPS_DIR/teuchos-$teuchos_version-$key"
catch2_prefix="$TAPER_DEPS_DIR/catch2-$catch2_version-$key"
minja_prefix="$TAPER_DEPS_DIR/minja-$llama_cpp_version-r$TAPER_DEPS_RECIPE"
python_prefix="$TAPER_DEPS_DIR/python-$(python_key || true)-r$TAPER_PYTHON_RECIPE"
env_file="$TAPER_DEPS_DIR/env-$key.sh"
if [[ $with_cuda == yes ]]; then
  kokkos_prefix="$TAPER_DEPS_DIR/kokkos-$kokkos_version-$(cuda_key)-$key"
  env_file="${env_file%.sh}-cuda.sh"
fi

probe_existing "$kokkos_prefix" "$teuchos_prefix" "$minja_prefix" "$catch2_prefix"
is_found catch2 || install_catch2 "$catch2_prefix"
is_found kokkos || if [[ $with_cuda == yes ]]; then
  install_kokkos_cuda "$kokkos_prefix"
else
  install_kokkos "$kokkos_prefix"
fi
is_found teuchos || install_teuchos "$teuchos_prefix"
is_found minja || install_minja "$minja_prefix"
[[ $with_python == no ]] || install_python "$python_prefix"

# The lines for the caller. Prefixes are appended: what the user put in front stays in front.
print_env() {
  local prefix prefixes=()
  for prefix in "$kokkos_prefix" "$teuchos_prefix" "$minja_prefix" "$catch2_prefix"; do
    [[ ! -d "$prefix" ]] || prefixes+=("$prefix")
  done
  cat << END
# Written by cmake/deps/install.sh; for the shell that configures Taper.
for taper_prefix in${prefixes[*]+$(printf ' "%s"' "${prefixes[@]}")}; do
  case ":\${CMAKE_PREFIX_PATH-}:" in
    *":\$taper_prefix:"*) ;;
    *) export CMAKE_PREFIX_PATH="\${CMAKE_PREFIX_PATH:+\$CMAKE_PREFIX_PATH:}\$taper_prefix" ;;
  esac
done
unset taper_prefix
END
  # CMake looks here before CMAKE_PREFIX_PATH: a shell can change between the two kinds of Kokkos,
  # and an unfit package in the user's path is passed over.
  is_found kokkos || printf 'export Kokkos_ROOT="%s"\n' "$kokkos_prefix"
  is_found teuchos || printf 'export TeuchosParameterList_ROOT="%s"\n' "$teuchos_prefix"
  [[ $with_cuda == no ]] || printf 'export CUDA_ROOT="%s"\n' "$(cuda_root)"
  [[ ! -d "$python_prefix" ]] || printf 'export TAPER_PYTHON="%s/bin/python"\n' "$python_prefix"
}
print_env > "$env_file.$$" && mv "$env_file.$$" "$env_file"
cat "$env_file"
log "ready: $env_file"
