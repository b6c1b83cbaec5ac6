# SPDX-License-Identifier: Apache-2.0
# Target taper_version: writes generated/Version.cpp into the build tree. Version, git hash, compiler and build type stand
# in every result file, so each build asks git again.
include_guard(GLOBAL)
find_package(Git QUIET)
add_custom_target(taper_version
  COMMAND ${CMAKE_COMMAND} -DGIT=$<$<BOOL:${GIT_FOUND}>:${GIT_EXECUTABLE}> -DSOURCE=${PROJECT_SOURCE_DIR}
    -DPROJECT_VERSION=${PROJECT_VERSION} -DCMAKE_CXX_COMPILER_ID=${CMAKE_CXX_COMPILER_ID}
    -DCMAKE_CXX_COMPILER_VERSION=${CMAKE_CXX_COMPILER_VERSION} -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
    -DINPUT=${PROJECT_SOURCE_DIR}/src/base/Version.cpp.in -DOUTPUT=${PROJECT_BINARY_DIR}/generated/Version.cpp
    -P ${CMAKE_CURRENT_LIST_DIR}/WriteVersion.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/Version.cpp
  COMMENT "Generating Version.cpp from what git says"
  VERBATIM)
