# Compiler settings for everything, and the helpers every CMakeLists.txt here is made of:
#
#   mbcas_module(market DEPENDS base SOURCES solver.cc TESTS solver_test.cc)
#       One folder of mbcas/ = one static library mbcas_<name> and one test binary <name>_test.
#       DEPENDS names the modules its headers and sources may include; scripts/check-layers
#       holds every #include against this list. TEST_DEPENDS adds modules for its tests only.
#       THREADS marks a module that starts threads: its tests run under the thread sanitizer too.
#       LIBRARIES are outside libraries that its headers expose, PRIVATE_LIBRARIES the others.
#   mbcas_test(control_plane_test LABEL integration SOURCES ... DEPENDS ... LIBRARIES ...)
#       A test binary outside mbcas/. LABEL is unit, kernel, integration or cluster; SERIAL: with no
#       other at the same time. Tests run in the root of the source tree, so they open test/golden/... by
#       that name.
#   mbcas_realtime_tests()
#       All tests of this directory that are no unit tests depend on the real time, as those of
#       mbcas_test do: on a machine that other work keeps busy scripts/test may try one again.
#   mbcas_benchmark(market_benchmark SOURCES ... DEPENDS ...)
#   mbcas_fuzzer(quantity_fuzzer DEPENDS base)        built from <name>.cc, seeds in corpus/<name>/

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the source tree, so that a fresh clone elsewhere finds the same entries, and
  # always the same locale, which ccache distinguishes: a container mostly has none.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env --unset=LC_ALL --unset=LC_CTYPE --unset=LC_MESSAGES LANG=C.UTF-8
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros
      ${CCACHE})
endif()

add_library(mbcas_options INTERFACE)
# Structs of options are meant to be filled in part, by designated initializers.
target_compile_options(mbcas_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
target_include_directories(mbcas_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
if(MBCAS_SANITIZE)
  add_compile_options(-fsanitize=${MBCAS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MBCAS_SANITIZE})
endif()
if(MBCAS_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(MBCAS_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
if(MBCAS_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
if(MBCAS_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

# What the sanitizer builds need; `all` has the integration tests and benchmarks too.
add_custom_target(unit_tests)
add_custom_target(threaded_tests)
add_custom_target(fuzzers)

# ${out}: the library targets of the modules named in DEPENDS.
macro(mbcas_module_targets out)
  set(${out} "")
  foreach(_module IN ITEMS ${ARGN})
    list(APPEND ${out} mbcas_${_module})
  endforeach()
endmacro()

function(mbcas_module name)
  cmake_parse_arguments(PARSE_ARGV 1 M "THREADS" ""
    "DEPENDS;LIBRARIES;PRIVATE_LIBRARIES;SOURCES;TESTS;TEST_DEPENDS;TEST_LIBRARIES")
  mbcas_module_targets(dependencies ${M_DEPENDS})
  add_library(mbcas_${name} STATIC ${M_SOURCES})
  add_library(mbcas::${name} ALIAS mbcas_${name})
  target_link_libraries(mbcas_${name}
    PUBLIC ${dependencies} ${M_LIBRARIES}
    PRIVATE $<BUILD_INTERFACE:mbcas_options> ${M_PRIVATE_LIBRARIES})
  target_include_directories(mbcas_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(MBCAS_TESTS AND M_TESTS)
    mbcas_test(${name}_test LABEL unit SOURCES ${M_TESTS}
      DEPENDS ${name} ${M_TEST_DEPENDS} LIBRARIES ${M_TEST_LIBRARIES})
    if(M_THREADS)
      set_tests_properties(unit.${name}_test PROPERTIES LABELS "unit;threads")
      add_dependencies(threaded_tests ${name}_test)
    endif()
  endif()
endfunction()

function(mbcas_test name)
  cmake_parse_arguments(PARSE_ARGV 1 T "SERIAL" "LABEL;TIMEOUT" "SOURCES;DEPENDS;LIBRARIES")
  mbcas_module_targets(dependencies ${T_DEPENDS})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE mbcas_options ${dependencies} ${T_LIBRARIES}
    rapidcheck GTest::gtest_main)
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 900)  # half a minute of work takes long on a machine that others keep busy
  endif()
  if(MBCAS_SANITIZE OR T_LABEL STREQUAL "unit")
    # What is tested stays optimised; the tests themselves compile in half the time and run the
    # longer for it. Of the others some measure.
    target_compile_options(${name} PRIVATE -O0)
  endif()
  if(MBCAS_SANITIZE)
    math(EXPR T_TIMEOUT "${T_TIMEOUT} * 3")
  endif()
  add_test(NAME ${T_LABEL}.${name} COMMAND ${name})
  set_tests_properties(${T_LABEL}.${name} PROPERTIES LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(T_LABEL STREQUAL "unit")
    add_dependencies(unit_tests ${name})
  else()
    set_tests_properties(${T_LABEL}.${name} PROPERTIES LABELS "${T_LABEL};realtime")
  endif()
  set_tests_properties(${T_LABEL}.${name} PROPERTIES RUN_SERIAL ${T_SERIAL})
endfunction()

function(mbcas_realtime_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    get_property(labels TEST ${test} PROPERTY LABELS)
    if(NOT "unit" IN_LIST labels AND NOT "realtime" IN_LIST labels)
      set_tests_properties(${test} PROPERTIES LABELS "${labels};realtime")
    endif()
  endforeach()
endfunction()

function(mbcas_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 B "" "" "SOURCES;DEPENDS;LIBRARIES")
  mbcas_module_targets(dependencies ${B_DEPENDS})
  add_executable(${name} ${B_SOURCES})
  target_link_libraries(${name} PRIVATE mbcas_options ${dependencies} ${B_LIBRARIES}
    benchmark::benchmark_main)
endfunction()

function(mbcas_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 F "" "" "DEPENDS;LIBRARIES")
  mbcas_module_targets(dependencies ${F_DEPENDS})
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE mbcas_options ${dependencies} ${F_LIBRARIES})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzers)
  add_dependencies(fuzzers ${name})
endfunction()
