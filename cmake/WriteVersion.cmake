# SPDX-License-Identifier: Apache-2.0
# Configures INPUT to OUTPUT with what `git describe` (program GIT, empty: none) says of the folder SOURCE. Equal text
# leaves the file as it is: nothing is built again.
set(taper_git_hash unknown)
if(GIT)
  # Without optional locks: a build must not be in the way of a commit.
  execute_process(COMMAND ${GIT} --no-optional-locks describe --always --dirty --abbrev=12
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE described
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
  if(result EQUAL 0)
    set(taper_git_hash ${described})
  endif()
endif()
configure_file(${INPUT} ${OUTPUT} @ONLY)
