# SPDX-License-Identifier: Apache-2.0
# Kokkos with the CUDA back end, in a prefix of its own. nvcc_wrapper compiles it; a caller may keep
# g++ as the compiler, Kokkos' launcher then sends the files that use Kokkos to nvcc_wrapper.
# Sourced by install.sh.

cuda_sm="${TAPER_CUDA_SM:-90}"

find_nvcc() {
  local folder
  for folder in "${CUDA_ROOT:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}"; do
    if [[ -n "$folder" && -x "$folder/bin/nvcc" ]]; then printf '%s/bin/nvcc' "$folder"; return; fi
  done
  command -v nvcc || { [[ -x /usr/local/cuda/bin/nvcc ]] && printf /usr/local/cuda/bin/nvcc; } ||
    die "--cuda needs nvcc (load the CUDA module or set CUDA_HOME)"
}

# cuda_root: also what nvcc_wrapper reads from CUDA_ROOT when nvcc is not in PATH.
cuda_root() {
  local nvcc
  nvcc="$(find_nvcc)" && printf '%s' "${nvcc%/bin/nvcc}"
}

cuda_key() {
  local nvcc
  nvcc="$(find_nvcc)" || exit 1
  printf 'cuda%s-sm%s-ftz' "$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')" "$cuda_sm"
}

kokkos_arch() {
  case "$cuda_sm" in
    80) echo AMPERE80 ;;
    86) echo AMPERE86 ;;
    89) echo ADA89 ;;
    90) echo HOPPER90 ;;
    *) die "TAPER_CUDA_SM=$cuda_sm is not known here (80, 86, 89 or 90)" ;;
  esac
}

# The explicit -arch overrides nvcc_wrapper's default, sm_70, which CUDA 13 no longer has.
install_kokkos_cuda() {
  local nvcc arch
  nvcc="$(find_nvcc)" && arch="$(kokkos_arch)" || exit 1
  PATH="${nvcc%/*}:$PATH" NVCC_WRAPPER_DEFAULT_COMPILER="$CXX" install_kokkos "$1" \
    -DCMAKE_CXX_COMPILER=@SOURCE@/bin/nvcc_wrapper -DKokkos_ENABLE_CUDA=ON \
    "-DKokkos_ARCH_$arch=ON" "-DCUDAToolkit_ROOT=${nvcc%/bin/nvcc}" \
    "-DCMAKE_CXX_FLAGS=-arch=sm_$cuda_sm -include $here/cuda13_compat.hpp"
}

# finish_cuda_prefix WORK PREFIX: the installed files name nvcc_wrapper by its place in the prefix,
# and whoever links Kokkos gets the overloads for CUDA 13 too, since Kokkos_Core.hpp needs them.
finish_cuda_prefix() {
  local stage="$1/stage$2"
  grep -rlIF "$1/source/bin" "$stage" | xargs -r sed -i "s#$1/source/bin#$2/bin#g"
  # Its list of nvcc's options lacks the one that flushes denormals.
  sed -i 's/--fmad=\*|-fmad=\*|/&-ftz=*|/' "$stage/bin/nvcc_wrapper"
  grep -q -- '-ftz=' "$stage/bin/nvcc_wrapper" || die "nvcc_wrapper of this Kokkos cannot pass -ftz to nvcc"
  cp "$here/cuda13_compat.hpp" "$stage/include/"
  cat >> "$stage/lib/cmake/Kokkos/KokkosConfig.cmake" << 'END'

# Added by Taper's cmake/deps/cuda.sh, see the header.
get_filename_component(taper_header
  "${CMAKE_CURRENT_LIST_DIR}/../../../include/cuda13_compat.hpp" ABSOLUTE)
set_property(TARGET Kokkos::kokkoscore APPEND PROPERTY INTERFACE_COMPILE_OPTIONS
  "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${taper_header}>")
unset(taper_header)
END
}
