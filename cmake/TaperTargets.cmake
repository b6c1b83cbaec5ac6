# SPDX-License-Identifier: Apache-2.0
# Functions that define Taper's targets. Every module is a static library taper_<name>, alias taper::<name>.
include_guard(GLOBAL)

add_library(taper_flags INTERFACE)
# No contraction: a fused multiply-add is written out wherever one is meant (doc/numerics.md).
target_compile_options(taper_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unknown-pragmas -ffp-contract=off>
  # GCC 12 sees overlapping copies in its own std::string (GCC bug 105651), and with precompiled headers also too long ones.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<NOT:$<BOOL:${CMAKE_DISABLE_PRECOMPILE_HEADERS}>>>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>
  $<$<BOOL:${TAPER_ENABLE_WERROR}>:-Werror>)
target_compile_definitions(taper_flags INTERFACE
  $<$<BOOL:${TAPER_ENABLE_ASSERTIONS}>:TAPER_ASSERTIONS>
  $<$<CONFIG:Debug>:TAPER_ASSERTIONS>
  $<$<BOOL:${TAPER_ENABLE_AUDIT}>:TAPER_AUDIT>)
if(TAPER_SANITIZE)
  target_compile_options(taper_flags INTERFACE -fsanitize=${TAPER_SANITIZE} -fno-omit-frame-pointer
    # With sanitizers, GCC sees uninitialized values in its own std::regex (GCC bug 105562).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(taper_flags INTERFACE -fsanitize=${TAPER_SANITIZE})
endif()

# The standard library's headers, parsed once for all modules. Files are also compiled without (preset minimal), so that
# each includes what it needs.
add_library(taper_precompiled STATIC ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(taper_precompiled PRIVATE taper_flags)
target_precompile_headers(taper_precompiled PRIVATE
  <algorithm> <array> <charconv> <cmath> <cstdint> <cstring> <deque> <exception> <filesystem> <fstream> <functional>
  <iterator> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view>
  <system_error> <thread> <type_traits> <utility> <variant> <vector>)

# taper_module(name SOURCES a.cpp ... [KOKKOS_SOURCES b.cpp ...] [LINKS taper::base ...] [PRIVATE_LINKS ...])
# KOKKOS_SOURCES include Kokkos: with CUDA, nvcc compiles them and no others.
function(taper_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;KOKKOS_SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "taper_module(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_SOURCES)
    add_library(taper_${name} STATIC ${arg_SOURCES})
    target_include_directories(taper_${name} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
      $<INSTALL_INTERFACE:include/taper>)
    target_link_libraries(taper_${name} PUBLIC ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS} taper_flags)
    target_precompile_headers(taper_${name} REUSE_FROM taper_precompiled)
    if(arg_KOKKOS_SOURCES)
      add_library(taper_${name}_kokkos OBJECT ${arg_KOKKOS_SOURCES})
      target_include_directories(taper_${name}_kokkos PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
      target_link_libraries(taper_${name}_kokkos PRIVATE ${arg_LINKS} Kokkos::kokkos taper_flags)
      target_sources(taper_${name} PRIVATE $<TARGET_OBJECTS:taper_${name}_kokkos>)
      target_link_libraries(taper_${name} PRIVATE $<LINK_ONLY:Kokkos::kokkos>)
    endif()
  else()
    add_library(taper_${name} INTERFACE)
    target_include_directories(taper_${name} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
      $<INSTALL_INTERFACE:include/taper>)
    target_link_libraries(taper_${name} INTERFACE ${arg_LINKS})
  endif()
  add_library(taper::${name} ALIAS taper_${name})
  set_target_properties(taper_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY taper_module_targets taper_${name})
endfunction()
