#include "analysis/rules/goes_along.h"

namespace assay::analysis {

PathIndex call_of(const CallTree& tree, PathIndex wait) {
  PathIndex path = wait;
  while (path != 0 && tree.functions()[tree.paths()[path].function].kind != CodeKind::user)
    path = tree.paths()[path].parent;
  return path;
}

int64_t cpu_inside(const CallTree& tree, const std::vector<PathWeight>& cpu,
                   const std::unordered_set<PathIndex>& calls) {
  int64_t sum = 0;
  for (const PathWeight& weight : cpu) {
    PathIndex path = weight.path;
    while (path != 0 && !calls.contains(path)) path = tree.paths()[path].parent;
    if (path != 0) sum += weight.ns;
  }
  return sum;
}

int64_t own_cpu_of(const CallTree& tree, const std::vector<PathWeight>& cpu,
                   const std::unordered_map<FunctionIndex, int64_t>& caused_ns) {
  std::unordered_map<FunctionIndex, int64_t> own_ns;
  for (const PathWeight& weight : cpu) {
    FunctionIndex leaf = tree.paths()[weight.path].function;
    if (weight.path != 0 && caused_ns.contains(leaf)) own_ns[leaf] += weight.ns;
  }
  int64_t sum = 0;
  for (const auto& [function, ns] : own_ns) {
    if (ns < caused_ns.at(function)) sum += ns;
  }
  return sum;
}

}  // namespace assay::analysis
