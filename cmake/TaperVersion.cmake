# SPDX-License-Identifier: Apache-2.0
# Writes base/Version.hpp into the build tree: version, git hash, compiler and build type stand in every result file.
include_guard(GLOBAL)
set(taper_git_hash unknown)
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE taper_git_describe
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE taper_git_result)
  if(taper_git_result EQUAL 0)
    set(taper_git_hash ${taper_git_describe})
  endif()
endif()
configure_file(${PROJECT_SOURCE_DIR}/src/base/Version.cpp.in ${PROJECT_BINARY_DIR}/generated/Version.cpp @ONLY)
