# SPDX-License-Identifier: Apache-2.0
# One target, taper_teuchos, for Teuchos' ParameterList whatever the age of Trilinos: 13.4 and newer
# export TeuchosParameterList::all_libs, older ones bare library names without include folders.
# Include it from the top CMakeLists.txt and from the installed package's config file.

if(NOT TARGET taper_teuchos)
  find_package(TeuchosParameterList REQUIRED NO_CMAKE_SYSTEM_PATH) # Debian's in /usr needs Open MPI
  add_library(taper_teuchos INTERFACE IMPORTED)
  if(TARGET TeuchosParameterList::all_libs)
    target_link_libraries(taper_teuchos INTERFACE TeuchosParameterList::all_libs)
  else()
    target_link_libraries(taper_teuchos INTERFACE ${TeuchosParameterList_LIBRARIES})
    target_include_directories(taper_teuchos INTERFACE ${TeuchosParameterList_INCLUDE_DIRS})
  endif()
endif()
