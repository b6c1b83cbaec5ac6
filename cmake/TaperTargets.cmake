# SPDX-License-Identifier: Apache-2.0
# Functions that define Taper's targets. Every module is a static library taper_<name>, alias taper::<name>.
include_guard(GLOBAL)

add_library(taper_flags INTERFACE)
# No contraction: a fused multiply-add is written out wherever one is meant (doc/numerics.md).
target_compile_options(taper_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unknown-pragmas -ffp-contract=off>
  # GCC 12 sees overlapping copies in its own std::string (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
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

# taper_module(name SOURCES a.cpp ... [LINKS taper::base ...] [PRIVATE_LINKS ...])
function(taper_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "taper_module(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_SOURCES)
    add_library(taper_${name} STATIC ${arg_SOURCES})
    target_include_directories(taper_${name} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
      $<INSTALL_INTERFACE:include/taper>)
    target_link_libraries(taper_${name} PUBLIC ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS} taper_flags)
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
