// The names of functions that only allocate for their caller, and the pattern with which pprof
// readers leave them out. Only constants, because libassay includes this too.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace assay::model {

// Exact names, without versions and parameter lists.
inline constexpr std::array<std::string_view, 37> kAllocationFunctions{"malloc",
                                                                       "calloc",
                                                                       "realloc",
                                                                       "reallocarray",
                                                                       "aligned_alloc",
                                                                       "posix_memalign",
                                                                       "memalign",
                                                                       "valloc",
                                                                       "pvalloc",
                                                                       "mmap",
                                                                       "mmap64",
                                                                       "__libc_malloc",
                                                                       "__libc_calloc",
                                                                       "__libc_realloc",
                                                                       "__libc_memalign",
                                                                       "_int_malloc",
                                                                       "je_malloc",
                                                                       "tc_malloc",
                                                                       "mi_malloc",
                                                                       "strdup",
                                                                       "strndup",
                                                                       "__strdup",
                                                                       "__strndup",
                                                                       "asprintf",
                                                                       "vasprintf",
                                                                       "xmalloc",
                                                                       "xcalloc",
                                                                       "xrealloc",
                                                                       "xstrdup",
                                                                       "g_malloc",
                                                                       "g_malloc0",
                                                                       "g_realloc",
                                                                       "g_strdup",
                                                                       "PyMem_Malloc",
                                                                       "PyMem_RawMalloc",
                                                                       "ztrymalloc_usable",
                                                                       "__vasprintf_internal"};

// Families of functions, by prefix.
inline constexpr std::array<std::string_view, 9> kAllocationPrefixes{"operator new",
                                                                     "std::allocator<",
                                                                     "std::__new_allocator<",
                                                                     "std::allocator_traits<",
                                                                     "__gnu_cxx::new_allocator<",
                                                                     "__gnu_cxx::__alloc_traits<",
                                                                     "zmalloc",
                                                                     "zcalloc",
                                                                     "zrealloc"};

namespace pattern {

inline constexpr std::string_view kSpecial = "[]()*+?.|^$\\";

// Writes the names one after another, escaped to match literally, and returns the number of
// characters. Null: only counts.
constexpr size_t write(char* out) {
  size_t count = 0;
  auto put = [&](char c) {
    if (out) out[count] = c;
    ++count;
  };
  auto put_name = [&](std::string_view name) {
    if (count > 0) put('|');
    for (char c : name) {
      if (kSpecial.find(c) != std::string_view::npos) put('\\');
      put(c);
    }
  };
  for (std::string_view name : kAllocationFunctions) put_name(name);
  for (std::string_view prefix : kAllocationPrefixes) {
    put_name(prefix);
    put('.');
    put('*');
  }
  return count;
}

inline constexpr auto kText = [] {
  std::array<char, write(nullptr)> text{};
  write(text.data());
  return text;
}();

}  // namespace pattern

// A regular expression over names without their parameters.
inline constexpr std::string_view kAllocationPattern{pattern::kText.data(), pattern::kText.size()};

}  // namespace assay::model
