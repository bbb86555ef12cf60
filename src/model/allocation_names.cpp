#include "model/allocation_names.h"

#include <algorithm>
#include <array>

namespace assay::model {
namespace {

// Exact names, versions and parameter lists left off.
constexpr std::array<std::string_view, 37> kAllocationFunctions{"malloc",
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

// Families that a prefix tells.
constexpr std::array<std::string_view, 9> kAllocationPrefixes{"operator new",
                                                              "std::allocator<",
                                                              "std::__new_allocator<",
                                                              "std::allocator_traits<",
                                                              "__gnu_cxx::new_allocator<",
                                                              "__gnu_cxx::__alloc_traits<",
                                                              "zmalloc",
                                                              "zcalloc",
                                                              "zrealloc"};

constexpr std::array<std::string_view, 7> kPlumbing{"std::",
                                                    "__gnu_cxx::",
                                                    "void std::",
                                                    "bool std::",
                                                    "char* std::",
                                                    "google::protobuf::Arena",
                                                    "absl::container_internal::"};

std::string_view bare(std::string_view name) {
  size_t end = name.find_first_of("(@");
  if (end == 0) return name;
  return name.substr(0, end);
}

// In a regular expression all of a name stands for itself.
std::string quoted(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (std::string_view("[]()*+?.|^$\\").contains(c)) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

bool is_allocation_function(std::string_view name) {
  for (std::string_view prefix : kAllocationPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return std::ranges::find(kAllocationFunctions, bare(name)) != kAllocationFunctions.end();
}

bool is_library_plumbing(std::string_view name) {
  return std::any_of(kPlumbing.begin(), kPlumbing.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string allocation_functions_pattern() {
  std::string pattern;
  for (std::string_view name : kAllocationFunctions)
    pattern += (pattern.empty() ? "" : "|") + quoted(name);
  for (std::string_view prefix : kAllocationPrefixes) pattern += "|" + quoted(prefix) + ".*";
  return pattern;
}

}  // namespace assay::model
