#include "model/code/code_origin.h"

namespace assay::model {
namespace {

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// "perf-4711.map": where JIT compilers name their code for profilers.
bool is_perf_map(std::string_view name) {
  constexpr std::string_view kBegin = "perf-", kEnd = ".map";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  if (name.size() <= kBegin.size() + kEnd.size()) return false;
  std::string_view pid = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  return pid.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

size_t library_suffix_at(std::string_view module) {
  constexpr std::string_view kSuffix = ".so";
  size_t directory = module.size() - file_name(module).size();
  for (size_t at = module.find(kSuffix, directory); at != std::string_view::npos;
       at = module.find(kSuffix, at + 1)) {
    size_t behind = at + kSuffix.size();
    if (behind == module.size() || module[behind] == '.') return at;
  }
  return std::string_view::npos;
}

CodeOrigin code_origin(std::string_view module) {
  bool is_memory = module == "//anon" || module.starts_with("[anon");
  if (is_memory || module.starts_with("jitted-") || is_perf_map(file_name(module)))
    return CodeOrigin::generated;
  bool is_library = module == "[vdso]" || library_suffix_at(module) != std::string_view::npos;
  return is_library ? CodeOrigin::library : CodeOrigin::program;
}

}  // namespace assay::model
