# SPDX-License-Identifier: Apache-2.0
# The installed package: find_package(Taper) gives the modules as taper::<name>, with their headers. tests/install builds
# an example against it.
include_guard(GLOBAL)
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

if(TAPER_ENABLE_APPS)
  # PREFIX/bin/taper, and in PREFIX/share/taper what it and its users look for: report.cpp finds tools/ there.
  install(TARGETS taper RUNTIME DESTINATION bin)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/report DESTINATION share/taper/tools FILES_MATCHING PATTERN "*.py")
  install(FILES ${PROJECT_SOURCE_DIR}/tools/taper_report.py ${PROJECT_SOURCE_DIR}/tools/taper_h5.py
    ${PROJECT_SOURCE_DIR}/tools/taper_results.py
    ${PROJECT_SOURCE_DIR}/tools/reward_summary.py
    ${PROJECT_SOURCE_DIR}/tools/parquet_to_jsonl.py
    DESTINATION share/taper/tools)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/data ${PROJECT_SOURCE_DIR}/doc DESTINATION share/taper PATTERN "__pycache__" EXCLUDE)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION share/taper)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/slurm DESTINATION share/taper USE_SOURCE_PERMISSIONS)
  configure_file(${PROJECT_SOURCE_DIR}/packaging/modulefiles/taper.tcl.in ${PROJECT_BINARY_DIR}/modulefile @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/modulefile DESTINATION share/modulefiles/taper RENAME ${PROJECT_VERSION})
endif()
