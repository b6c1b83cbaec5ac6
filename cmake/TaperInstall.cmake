# SPDX-License-Identifier: Apache-2.0
# The installed package: find_package(Taper) gives the modules as taper::<name>, with their headers. tests/install builds
# an example against it.
include_guard(GLOBAL)
if(TAPER_ENABLE_CUDA)
  return() # a few modules only, so far
endif()
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(taper_package ${CMAKE_INSTALL_LIBDIR}/cmake/Taper)

get_property(taper_targets GLOBAL PROPERTY taper_module_targets)
set_target_properties(taper_flags PROPERTIES EXPORT_NAME flags)
set_target_properties(taper_hdf5 PROPERTIES EXPORT_NAME hdf5)
install(TARGETS ${taper_targets} taper_flags taper_hdf5 EXPORT TaperTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT TaperTargets NAMESPACE taper:: DESTINATION ${taper_package})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/ DESTINATION include/taper FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels DESTINATION include/taper FILES_MATCHING PATTERN "*.hpp")
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TaperConfig.cmake.in ${PROJECT_BINARY_DIR}/TaperConfig.cmake
  INSTALL_DESTINATION ${taper_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TaperConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TaperConfig.cmake ${PROJECT_BINARY_DIR}/TaperConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/deps/teuchos.cmake DESTINATION ${taper_package})
