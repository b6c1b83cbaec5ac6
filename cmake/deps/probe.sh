# SPDX-License-Identifier: Apache-2.0
# Asks CMake which dependencies the user's modules, Spack environment or CMAKE_PREFIX_PATH offer
# already. Sourced by install.sh.

declare -A found=()
is_found() { [[ -n "${found[$1]:-}" ]]; }

# The user's search path without the prefixes that an earlier call of ours put there.
foreign_prefix_path() {
  tr ':' '\n' <<< "${CMAKE_PREFIX_PATH:-}" |
    grep -v -e '^$' -e "^$TAPER_DEPS_DIR/" | paste -sd: || true
}

# probe_existing PREFIXES...: when our own prefixes exist and the environment names no
# others, there is nothing to ask.
probe_existing() {
  local variable others folder name where
  others="$(foreign_prefix_path)"
  for variable in Kokkos_ROOT Kokkos_DIR Trilinos_ROOT Trilinos_DIR TeuchosParameterList_ROOT \
    TeuchosParameterList_DIR Catch2_ROOT Catch2_DIR; do
    if [[ "${!variable:-}" == "$TAPER_DEPS_DIR"/* ]]; then unset "$variable"; fi
    others+="${!variable:-}"
  done
  for folder in "$@"; do [[ -d "$folder" ]] || others+=" $folder"; done
  [[ -n "$others" ]] || return 0
  command -v cmake > /dev/null || die "cmake is missing"
  folder="$(new_work_dir probe)"
  cat > "$folder/CMakeLists.txt" << 'END'
cmake_minimum_required(VERSION 3.20)
project(probe LANGUAGES CXX)
find_package(Kokkos 4.5 QUIET)
if(Kokkos_FOUND AND (Kokkos_ENABLE_CUDA OR NOT WITH_CUDA))
  message("TAPER_FOUND kokkos ${Kokkos_DIR}")
endif()
# Not from /usr: Debian's Teuchos is linked to Open MPI.
find_package(TeuchosParameterList QUIET NO_CMAKE_SYSTEM_PATH)
if(TeuchosParameterList_FOUND)
  # Trilinos 13.2 has a header that C++20 refuses, see teuchos.sh.
  get_filename_component(prefix "${TeuchosParameterList_DIR}/../../.." ABSOLUTE)
  find_file(header Teuchos_StandardParameterEntryValidators.hpp NO_DEFAULT_PATH
    PATHS ${prefix} PATH_SUFFIXES include include/trilinos)
  if(header)
    file(STRINGS "${header}" refused REGEX "^ *AbstractArrayValidator<.*>\\(\\);")
  endif()
  if(NOT refused)
    message("TAPER_FOUND teuchos ${TeuchosParameterList_DIR}")
  endif()
endif()
find_path(minja minja/minja.hpp)
if(minja)
  message("TAPER_FOUND minja ${minja}")
endif()
find_package(Catch2 3 QUIET)
if(Catch2_FOUND)
  message("TAPER_FOUND catch2 ${Catch2_DIR}")
endif()
END
  CMAKE_PREFIX_PATH="$(foreign_prefix_path)" step probe cmake -S "$folder" -B "$folder/build" \
    -DWITH_CUDA="$([[ $with_cuda == yes ]] && echo ON || echo OFF)" || return 0
  while read -r _ name where; do
    found[$name]="$where"
    log "$name: found in $where"
  done < <(grep '^TAPER_FOUND' "$TAPER_DEPS_DIR/logs/probe.log")
}
