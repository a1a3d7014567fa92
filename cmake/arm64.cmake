# Cross compilation for arm64, with the libraries that scripts/sysroot fetches:
#
#   cmake --preset arm64 -DMBCAS_SYSROOT="$(scripts/sysroot)" \
#     -DMBCAS_STATIC_LIBS="$(scripts/static-libs arm64)"             scripts/build arm64 does it
#
# Tests run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MBCAS_SYSROOT)
if(NOT EXISTS "${MBCAS_SYSROOT}/packages")
  message(FATAL_ERROR "MBCAS_SYSROOT is not what scripts/sysroot prints: ${MBCAS_SYSROOT}")
endif()

set(CMAKE_FIND_ROOT_PATH ${MBCAS_SYSROOT} /usr/aarch64-linux-gnu)  # headers of the C library
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(_libraries ${MBCAS_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${_libraries}/pkgconfig:${MBCAS_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${MBCAS_SYSROOT})

# Where the sysroot is must not be seen in what is built.
set(_flags "-ffile-prefix-map=${MBCAS_SYSROOT}=")
foreach(directory IN ITEMS usr/include usr/include/aarch64-linux-gnu)
  string(APPEND _flags " -isystem ${MBCAS_SYSROOT}/${directory}")
endforeach()
set(CMAKE_C_FLAGS_INIT "${_flags}")
set(CMAKE_CXX_FLAGS_INIT "${_flags}")
# The C library of the sysroot instead of the compiler's own; as an archive, also in tests. Of these the
# linker warns that names of hosts are looked up by libraries that are loaded for it.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -Wl,--no-warnings -B${_libraries}/ -L${_libraries}")
set(OPENSSL_USE_STATIC_LIBS ON)
