#include "analysis/allocation_frames.h"

#include <algorithm>
#include <array>

namespace assay::analysis {
namespace {

// Exact names, versions and parameter lists left off.
constexpr std::array<std::string_view, 42> kAllocationFunctions{
    "malloc",          "calloc",         "realloc",         "reallocarray",
    "aligned_alloc",   "posix_memalign", "memalign",        "valloc",
    "pvalloc",         "mmap",           "mmap64",          "__libc_malloc",
    "__libc_calloc",   "__libc_realloc", "__libc_memalign", "_int_malloc",
    "je_malloc",       "tc_malloc",      "mi_malloc",       "operator new",
    "operator new[]",  "strdup",         "strndup",         "__strdup",
    "__strndup",       "asprintf",       "vasprintf",       "__vasprintf_internal",
    "xmalloc",         "xcalloc",        "xrealloc",        "xstrdup",
    "g_malloc",        "g_malloc0",      "g_realloc",       "g_strdup",
    "zmalloc",         "zcalloc",        "zrealloc",        "ztrymalloc_usable",
    "PyMem_RawMalloc", "PyMem_Malloc"};

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

}  // namespace

bool is_allocation_function(std::string_view name) {
  std::string_view base = bare(name);
  if (base.starts_with("operator new")) return true;
  return std::find(kAllocationFunctions.begin(), kAllocationFunctions.end(), base) !=
         kAllocationFunctions.end();
}

bool is_library_plumbing(std::string_view name) {
  return std::any_of(kPlumbing.begin(), kPlumbing.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

size_t frames_to_cut(std::span<const FrameText> leaf_first) {
  size_t own = 0;
  while (own < leaf_first.size() && is_allocation_function(leaf_first[own].function)) ++own;
  size_t plumbing = own;
  while (plumbing < leaf_first.size() && (is_library_plumbing(leaf_first[plumbing].function) ||
                                          is_allocation_function(leaf_first[plumbing].function)))
    ++plumbing;
  bool program_follows =
      plumbing < leaf_first.size() && leaf_first[plumbing].kind == CodeKind::user;
  if (program_follows) return plumbing;
  return own < leaf_first.size() ? own : 0;
}

}  // namespace assay::analysis
