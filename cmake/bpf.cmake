# The programs of src/capture/bpf: compiled by clang, turned into a header by bpftool, loaded by
# libbpf. All three are needed at build time only (libbpf also at run time); without one of them
# Assay is built without this backend, says so here, and `assay record --backend bpf` says so.
option(ASSAY_BPF "Build the BPF backend where its tools are there" ON)

find_program(ASSAY_CLANG NAMES clang-19 clang-20 clang-18 clang-17 clang-16 clang-15 clang-14 clang)
find_program(ASSAY_BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin)
pkg_check_modules(LIBBPF IMPORTED_TARGET libbpf>=1.0)

set(ASSAY_WITHOUT_BPF "")
if(NOT ASSAY_BPF)
  set(ASSAY_WITHOUT_BPF "ASSAY_BPF is off")
elseif(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  set(ASSAY_WITHOUT_BPF "the programs know x86-64 only")
elseif(NOT ASSAY_CLANG)
  set(ASSAY_WITHOUT_BPF "clang was not found")
elseif(NOT ASSAY_BPFTOOL)
  set(ASSAY_WITHOUT_BPF "bpftool was not found")
elseif(NOT LIBBPF_FOUND)
  set(ASSAY_WITHOUT_BPF "libbpf 1.0 or newer was not found")
endif()
if(ASSAY_WITHOUT_BPF)
  message(STATUS "BPF backend: not built (${ASSAY_WITHOUT_BPF}; scripts/install-deps)")
else()
  message(STATUS "BPF backend: ${ASSAY_CLANG}, ${ASSAY_BPFTOOL}, libbpf ${LIBBPF_VERSION}")
endif()

# Compiles the programs and gives `target` their headers, capture/bpf/assay.skel.h and syscalls.skel.h.
function(assay_bpf_programs target)
  if(ASSAY_WITHOUT_BPF)
    target_compile_definitions(${target} PRIVATE ASSAY_WITHOUT_BPF="${ASSAY_WITHOUT_BPF}")
    return()
  endif()
  set(source ${PROJECT_SOURCE_DIR}/src/capture/bpf/programs)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/bpf/capture/bpf)
  file(MAKE_DIRECTORY ${out})
  file(GLOB inputs CONFIGURE_DEPENDS ${source}/*.h ${source}/*.c ${source}/../shared.h)
  # clang for BPF does not search the machine's own directory of asm/ headers.
  set(machine_headers /usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  set(headers)
  foreach(program assay syscalls)
    add_custom_command(
      OUTPUT ${out}/${program}.skel.h
      COMMAND ${ASSAY_CLANG} -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -Wall -Werror
              -Wno-unused-function -I${machine_headers} -I${LIBBPF_INCLUDEDIR}
              -I${PROJECT_SOURCE_DIR}/src -c ${source}/${program}.bpf.c
              -o ${out}/${program}.bpf.o
      COMMAND ${ASSAY_BPFTOOL} gen object ${out}/${program}.linked.o ${out}/${program}.bpf.o
      COMMAND ${ASSAY_BPFTOOL} gen skeleton ${out}/${program}.linked.o name ${program}_bpf
              > ${out}/${program}.skel.h
      DEPENDS ${inputs}
      COMMENT "BPF programs: ${program}"
      VERBATIM)
    list(APPEND headers ${out}/${program}.skel.h)
  endforeach()
  add_custom_target(assay_bpf_header DEPENDS ${headers})
  add_dependencies(${target} assay_bpf_header)
  target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/bpf)
  target_link_libraries(${target} PRIVATE PkgConfig::LIBBPF)
endfunction()
