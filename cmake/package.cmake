# mbcas_package(market NEEDS base FINDS CURL HEADERS solver.h ...)
#   Makes a module a CMake package of its own: after `cmake --install`, find_package(mbcas_market)
#   gives mbcas::market to any project. NEEDS names the modules its headers or code need, which are
#   packages too; each is also an install component, mbcas_<name>. FINDS names outside packages, each
#   as find_package() takes it ("prometheus-cpp COMPONENTS core").

include(CMakePackageConfigHelpers)

function(mbcas_package name)
  cmake_parse_arguments(PARSE_ARGV 1 P "" "" "NEEDS;FINDS;HEADERS")
  set(package mbcas_${name})
  set(destination ${CMAKE_INSTALL_LIBDIR}/cmake/${package})
  set_target_properties(${package} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${package} EXPORT ${package}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${package})
  foreach(header IN LISTS P_HEADERS)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mbcas/${name}
      COMPONENT ${package})
  endforeach()
  install(EXPORT ${package} NAMESPACE mbcas:: FILE ${package}Targets.cmake
    DESTINATION ${destination} COMPONENT ${package})

  set(config "include(CMakeFindDependencyMacro)\n")
  foreach(needed IN LISTS P_NEEDS)
    string(APPEND config "find_dependency(mbcas_${needed} ${PROJECT_VERSION} EXACT)\n")
  endforeach()
  foreach(found IN LISTS P_FINDS)
    string(APPEND config "find_dependency(${found})\n")
  endforeach()
  string(APPEND config "include(\${CMAKE_CURRENT_LIST_DIR}/${package}Targets.cmake)\n")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${package}Config.cmake ${config})
  write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/${package}ConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}Config.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/${package}ConfigVersion.cmake
    DESTINATION ${destination} COMPONENT ${package})
endfunction()
