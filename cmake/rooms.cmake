# One CMake target per folder of src/. A room is a static library made of every .cpp in its folder
# (subfolders included); its *_test.cpp files become one test program, <room>_test.
add_library(assay_flags INTERFACE)
target_compile_options(assay_flags INTERFACE -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor
                                             -fno-omit-frame-pointer
                                             # Optimised, names and lines are what stacks need; the rest of the
                                             # debug information takes a quarter of the compiler's time.
                                             $<IF:$<CONFIG:RelWithDebInfo>,-g1,-g>
                                             # Every checkout compiles the same objects: a compiler cache may share them.
                                             -fdebug-prefix-map=${PROJECT_SOURCE_DIR}=.
                                             # GCC 12 sees faults in std::string that are not there
                                             $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
target_include_directories(assay_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(assay_flags INTERFACE ASSAY_VERSION="${PROJECT_VERSION}")
if(ASSAY_SANITIZE)
  # Instrumented code makes GCC 12 see faults in the standard library (std::regex, for one): warnings are
  # errors in the other builds.
  target_compile_options(assay_flags INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-sanitize-recover=all -Wno-error -g1)
  target_link_options(assay_flags INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()

# A compiler cache where there is one. It takes precompiled headers only when it is told that they are safe, and with
# GCC only when the preprocessor names them. Depend mode spares a run of the preprocessor for each file that is new.
# The working directory stays part of the key: the lab's servers and the kernel tests' programs name their sources by
# it, and an object from a checkout that is gone would name files that are gone.
find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
                                  CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${ASSAY_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  target_compile_options(assay_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

# Most of a room's compile time went into these; compiled once, they cut a full build to about half.
set(ASSAY_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <cstdint> <expected> <functional> <map> <memory>
    <mutex> <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <variant> <vector> <fmt/format.h>)
add_library(assay_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(assay_precompiled PRIVATE assay_flags fmt::fmt Threads::Threads)
target_precompile_headers(assay_precompiled PRIVATE ${ASSAY_COMMON_HEADERS})

# Test programs: what they test is optimised, they themselves need not be, and compile in half the time.
if(ASSAY_TESTS)
  add_library(assay_test_flags INTERFACE)
  target_compile_options(assay_test_flags INTERFACE -O0 -g1)
  target_link_libraries(assay_test_flags INTERFACE assay_flags GTest::gmock GTest::gtest_main)
  add_library(assay_test_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(assay_test_precompiled PRIVATE assay_test_flags fmt::fmt Threads::Threads)
  target_precompile_headers(assay_test_precompiled PRIVATE ${ASSAY_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
  # Every program that the tests labelled unit run: all that the sanitizers' builds need.
  add_custom_target(unit_tests)
endif()

# A test program: its own sources and its libraries, compiled the quick way.
function(assay_test_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  target_link_libraries(${name} PRIVATE ${PROGRAM_LIBS} fmt::fmt assay_test_flags)
  target_precompile_headers(${name} REUSE_FROM assay_test_precompiled)
endfunction()

# Tells the tests that read files of the tree where it is, and only those: a compiler cache can then give the objects of
# the others to every checkout.
function(assay_tell_source_root)
  foreach(source ${ARGN})
    file(STRINGS ${source} uses REGEX "SOURCE_ROOT")
    if(uses)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS SOURCE_ROOT="${PROJECT_SOURCE_DIR}")
    endif()
  endforeach()
endfunction()

# HEADERS: headers that most of the room's files include and that take long to read, compiled once besides.
function(assay_room name)
  cmake_parse_arguments(ROOM "" "" "DEPS;LIBS;HEADERS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(TRANSFORM ROOM_DEPS PREPEND assay_ OUTPUT_VARIABLE deps)
  if(sources)
    add_library(assay_${name} STATIC ${sources})
    target_link_libraries(assay_${name} PUBLIC assay_flags fmt::fmt ${deps} ${ROOM_LIBS})
    if(ROOM_HEADERS)
      target_precompile_headers(assay_${name} PRIVATE ${ASSAY_COMMON_HEADERS} ${ROOM_HEADERS})
    else()
      target_precompile_headers(assay_${name} REUSE_FROM assay_precompiled)
    endif()
  else()
    add_library(assay_${name} INTERFACE)
    target_link_libraries(assay_${name} INTERFACE assay_flags fmt::fmt ${deps} ${ROOM_LIBS})
  endif()
  if(ASSAY_TESTS AND tests)
    assay_test_program(${name}_test SOURCES ${tests} LIBS assay_${name})
    add_dependencies(unit_tests ${name}_test)
    assay_tell_source_root(${tests})
    gtest_discover_tests(${name}_test PROPERTIES LABELS unit DISCOVERY_TIMEOUT 120)
  endif()
endfunction()
