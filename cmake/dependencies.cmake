# Everything Assay links comes from Debian's packages; scripts/install-deps installs them.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)  # header only: included by one file, not linked
# Static archives where Debian has them: loading the shared libraries took half of the start-up time
# of `assay`.
set(suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
set(CMAKE_FIND_LIBRARY_SUFFIXES .a ${suffixes})
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(LZMA REQUIRED IMPORTED_TARGET liblzma)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(OPENSSL REQUIRED IMPORTED_TARGET openssl)
pkg_check_modules(PROTOBUF REQUIRED IMPORTED_TARGET protobuf)
set(CMAKE_FIND_LIBRARY_SUFFIXES ${suffixes})
pkg_check_modules(ELFUTILS REQUIRED IMPORTED_TARGET libdw libelf)
if(ASSAY_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
