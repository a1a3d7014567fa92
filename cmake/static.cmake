# Binaries without shared libraries: smaller in memory (docs/agent.md has the numbers), and they run in an
# image that holds nothing else.
#
#   cmake --preset release -DMBCAS_STATIC_LIBS="$(scripts/static-libs)"      scripts/build does it
#
# Without it everything links the distribution's shared libraries.
#
#   mbcas_archive(OUT TARGET ARCHIVE NEEDS...)
#       OUT is what to link for TARGET, an outside library that find_package() or pkg-config found: the
#       archive and the libraries that it needs, or without MBCAS_STATIC_LIBS the target itself. An
#       installed package names the target in either case: the headers are the same.
#   mbcas_binary(NAME)        an executable that is installed

set(MBCAS_STATIC_LIBS "" CACHE PATH "What scripts/static-libs printed; empty: shared libraries")

function(mbcas_archive out target archive)
  if(NOT MBCAS_STATIC_LIBS)
    set(${out} ${target} PARENT_SCOPE)
    return()
  endif()
  if(NOT IS_ABSOLUTE ${archive})
    set(archive ${MBCAS_STATIC_LIBS}/lib/${archive})
  endif()
  cmake_path(GET archive STEM name)
  if(NOT TARGET mbcas_${name})
    add_library(mbcas_${name} INTERFACE)
    target_link_libraries(mbcas_${name} INTERFACE ${archive} ${ARGN})
    foreach(property IN ITEMS INTERFACE_COMPILE_DEFINITIONS INTERFACE_COMPILE_OPTIONS)
      get_target_property(value ${target} ${property})
      if(value)
        set_target_properties(mbcas_${name} PROPERTIES ${property} "${value}")
      endif()
    endforeach()
  endif()
  set(${out} $<BUILD_INTERFACE:mbcas_${name}> $<INSTALL_INTERFACE:${target}> PARENT_SCOPE)
endfunction()

function(mbcas_binary name)
  install(TARGETS ${name})
  if(MBCAS_STATIC_LIBS)
    # The linker warns that names of hosts may be looked up by libraries that are loaded for it; those
    # that matter, files and DNS, are part of glibc itself.
    target_link_options(${name} PRIVATE -static -Wl,--gc-sections -Wl,--no-warnings)
  endif()
endfunction()
