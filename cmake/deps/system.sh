# SPDX-License-Identifier: Apache-2.0
# System packages: compilers, MPICH, parallel HDF5 and small libraries. Debian is served by apt;
# elsewhere we name what modules or Spack must offer and go on, CMake tells later what is missing.
# Sourced by install.sh.

system_packages=(
  g++ cmake ninja-build make patch python3-venv curl
  mpich libmpich-dev libhdf5-mpich-dev hdf5-tools
  nlohmann-json3-dev libonig-dev libutf8proc-dev libyaml-cpp-dev
)

# A Slurm for tests/slurm, which starts it in a scratch folder; only root can.
test_packages=(slurm-wlm munge)

# missing_packages NAMES...
missing_packages() {
  comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2> /dev/null |
      sed -n 's/^ii  *//p' | sort)
}

apt_install() {
  local root=("$@")
  "${root[@]}" apt-get update &&
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "${missing[@]}"
}

install_system_packages() {
  local missing root=()
  if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
    print_needed_modules "not a Debian system"
    return
  fi
  mapfile -t missing < <(missing_packages "${system_packages[@]}")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $EUID -ne 0 ]]; then
    if ! sudo -n true 2> /dev/null; then
      print_needed_modules "no root rights here; Debian packages missing: ${missing[*]}"
      return
    fi
    root=(sudo -n)
  fi
  log "installing ${missing[*]}"
  step system-packages apt_install "${root[@]}"
}

# Without them the tests that need them are skipped.
install_test_packages() {
  local missing
  if [[ $EUID -ne 0 ]] || ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
    return 0
  fi
  mapfile -t missing < <(missing_packages "${test_packages[@]}")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  log "installing ${missing[*]} for the tests"
  step test-packages without_services apt_install || log "no Slurm: its tests are skipped"
}

# without_services COMMAND...: packages that are installed meanwhile do not start their daemons,
# which ask Debian's policy-rc.d. The end of a subshell.
without_services() {
  local policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod +x "$policy"
  fi
  "$@"
}

print_needed_modules() {
  log "system packages left alone ($1)"
  cat >&2 << 'END'
  Load modules or Spack packages that offer:
    gcc >= 12 (or clang >= 16), cmake >= 3.25, ninja, python >= 3.10
    mpich (or another MPI >= 3.1)     spack: mpich
    HDF5, parallel, same MPI          spack: hdf5+mpi
    nlohmann-json, oniguruma, utf8proc, yaml-cpp >= 0.7
                                      spack: nlohmann-json oniguruma utf8proc yaml-cpp
  and, if you do not want them built here:
    kokkos >= 4.5                     spack: kokkos@4.5:+openmp+serial cxxstd=20
    Teuchos, fit for C++20            spack: trilinos+teuchos (newer than 13.2)
    Catch2 >= 3                       spack: catch2@3:
END
}
