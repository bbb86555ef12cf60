#include "analysis/profile/categories.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "model/code/code_origin.h"
#include "run/run_kind.h"

namespace assay::analysis {
namespace {

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1);
}

}  // namespace

Categories::Categories(const RuleSet& rules, NameSets& sets) {
  std::string main(kSubsystem);
  breakdown(main);
  auto own = [&](const char* id, const char* name, CategoryRole role = CategoryRole::none) {
    return add({main, id, name, role, {}});
  };
  app_ = own("application", "application", CategoryRole::application);
  library_ = own("other-libraries", "other libraries");
  kernel_ = own("kernel-other", "kernel: other");
  unnamed_ = own("unnamed", "code without names");
  no_stack_ = own("no-stack", "no stack");
  for (const CategoryRule& rule : rules.categories) {
    size_t at = breakdown(rule.breakdown);
    CategoryIndex index = add({rule.breakdown, rule.id, rule.name, rule.role, rule.suspect});
    bool of_all =
        rule.names.functions.empty() && rule.names.modules == std::vector<std::string>{"*"};
    breakdowns_[at].candidates.push_back(
        {index, sets.add(rule.names), sets.add(rule.under), of_all});
  }
}

size_t Categories::breakdown(const std::string& name) {
  for (size_t i = 0; i < breakdowns_.size(); ++i) {
    if (breakdowns_[i].name == name) return i;
  }
  breakdowns_.push_back({name, {}, 0});
  if (breakdowns_.size() > 1) {
    CategoryIndex rest = add({name, "rest", "everything else", CategoryRole::none, {}});
    breakdowns_.back().rest = rest;
  }
  return breakdowns_.size() - 1;
}

CategoryIndex Categories::add(Category category) {
  all_.push_back(std::move(category));
  return static_cast<CategoryIndex>(all_.size() - 1);
}

void Categories::place(const CallTree& tree, const StackFeatures& features,
                       const run::Contents& run) {
  std::set<std::string_view> programs;
  for (const model::Process& process : run.processes) programs.insert(last_part(process.exe));
  bool imported = run::is_imported(run::run_kind(run));
  application_.assign(tree.functions().size(), 0);
  unclassified_.assign(tree.functions().size(), 1);
  for (FunctionIndex f = 0; f < tree.functions().size(); ++f) {
    const Function& function = tree.functions()[f];
    // Imported files seldom say which program ran: what is no library is taken for it.
    bool taken = imported && model::code_origin(function.module) == model::CodeOrigin::program;
    application_[f] =
        function.kind == CodeKind::user && (programs.contains(function.module) || taken);
  }
  owner_.assign(breakdowns_.size(), std::vector<CategoryIndex>(tree.paths().size()));
  for (size_t b = 0; b < breakdowns_.size(); ++b) place_one(b, tree, features);
  for (const Candidate& candidate : breakdowns_[0].candidates) {
    if (candidate.of_all) continue;
    for (FunctionIndex f = 0; f < tree.functions().size(); ++f) {
      if (features.function_has(f, candidate.names)) unclassified_[f] = application_[f] = 0;
    }
  }
}

CategoryIndex Categories::unknown_owner(const CallTree& tree, PathIndex path,
                                        CategoryIndex above) const {
  FunctionIndex index = tree.paths()[path].function;
  const Function& function = tree.functions()[index];
  if (function.kind == CodeKind::marker) return no_stack_;
  if (function.kind == CodeKind::kernel) {
    // What the kernel does for a known part of it is that part's, down to its spinlocks.
    PathIndex parent = tree.paths()[path].parent;
    bool inside =
        parent != 0 && tree.functions()[tree.paths()[parent].function].kind == CodeKind::kernel;
    return inside ? above : kernel_;
  }
  if (application_[index]) return function.named ? app_ : unnamed_;
  return function.named ? library_ : unnamed_;
}

void Categories::place_one(size_t b, const CallTree& tree, const StackFeatures& features) {
  const Breakdown& breakdown = breakdowns_[b];
  // Functions with equal features have the same candidates.
  std::unordered_map<FeatureIndex, std::vector<Candidate>> by_feature;
  std::vector<CategoryIndex>& owner = owner_[b];
  owner[0] = b == 0 ? no_stack_ : breakdown.rest;
  for (PathIndex path = 1; path < tree.paths().size(); ++path) {
    PathIndex parent = tree.paths()[path].parent;
    FunctionIndex function = tree.paths()[path].function;
    CategoryIndex found = b == 0 ? unknown_owner(tree, path, owner[parent]) : owner[parent];
    FeatureIndex feature = features.of_function(function);
    if (feature != 0) {
      auto [it, added] = by_feature.try_emplace(feature);
      if (added) {
        for (const Candidate& c : breakdown.candidates) {
          if (features.has(feature, c.names)) it->second.push_back(c);
        }
      }
      for (const Candidate& c : it->second) {
        if (c.under != kNoSet && !features.path_has(parent, c.under)) continue;
        found = c.category;
        break;
      }
    }
    owner[path] = found;
  }
}

namespace {

struct Callers {
  FunctionIndex caller = 0, entry = 0;  // 0: none
};

Callers callers_of(const Categories& categories, const CallTree& tree, PathIndex path) {
  Callers found;
  for (PathIndex at = path; at != 0; at = tree.paths()[at].parent) {
    FunctionIndex index = tree.paths()[at].function;
    const Function& function = tree.functions()[index];
    if (function.kind != CodeKind::user) continue;
    if (found.entry == 0) found.entry = index;
    bool is_own = categories.application(index) && function.named &&
                  !function.name.starts_with("std::") && !function.name.starts_with("__gnu_cxx::");
    if (!is_own) continue;
    found.caller = index;
    break;
  }
  return found;
}

}  // namespace

std::array<RoleCaller, kCategoryRoles> role_callers(const Categories& categories,
                                                    const CallTree& tree,
                                                    const OnCpuBuilder& on_cpu) {
  struct Sum {
    int64_t ns = 0;
    std::map<FunctionIndex, int64_t> by_entry;
  };
  std::array<std::map<FunctionIndex, Sum>, kCategoryRoles> by_caller;
  std::array<int64_t, kCategoryRoles> whole{};
  for (const PathWeight& weight : on_cpu.path_weights()) {
    auto role = static_cast<size_t>(categories.role(weight.path));
    Callers callers = callers_of(categories, tree, weight.path);
    Sum& sum = by_caller[role][callers.caller];
    sum.ns += weight.ns;
    sum.by_entry[callers.entry] += weight.ns;
    whole[role] += weight.ns;
  }
  auto name_of = [&](FunctionIndex index) {
    return index == 0 ? std::string() : std::string(tree.functions()[index].name);
  };
  std::array<RoleCaller, kCategoryRoles> top;
  for (size_t role = 0; role < by_caller.size(); ++role) {
    if (whole[role] <= 0) continue;
    auto most = std::ranges::max_element(by_caller[role], {},
                                         [](const auto& caller) { return caller.second.ns; });
    auto entry = std::ranges::max_element(most->second.by_entry, {},
                                          [](const auto& sum) { return sum.second; });
    top[role] = {name_of(most->first), name_of(entry->first),
                 static_cast<double>(most->second.ns) / static_cast<double>(whole[role])};
  }
  return top;
}

std::vector<CategoryShare> category_shares(const Categories& categories, const CallTree& tree,
                                           const OnCpuBuilder& on_cpu) {
  struct Sum {
    int64_t ns = 0, inclusive_ns = 0;
    uint64_t samples = 0;
    PathIndex counted = 0;
    std::unordered_map<FunctionIndex, int64_t> leaves;
  };
  std::vector<Sum> sums(categories.all().size());
  std::vector<PathWeight> paths = on_cpu.path_weights();
  int64_t whole = 0;
  for (const PathWeight& weight : paths) {
    whole += weight.ns;
    for (size_t b = 0; b < categories.breakdowns(); ++b) {
      Sum& sum = sums[categories.owner(b, weight.path)];
      sum.ns += weight.ns;
      sum.samples += weight.samples;
      if (weight.path != 0) sum.leaves[tree.paths()[weight.path].function] += weight.ns;
      PathIndex mark = weight.path + 1;
      PathIndex at = weight.path;
      do {
        Sum& above = sums[categories.owner(b, at)];
        if (above.counted != mark) above.inclusive_ns += weight.ns;
        above.counted = mark;
        at = tree.paths()[at].parent;
      } while (at != 0);
    }
  }
  std::vector<CategoryShare> shares;
  for (CategoryIndex c = 0; c < sums.size(); ++c) {
    const Sum& sum = sums[c];
    if (sum.samples == 0) continue;
    auto ratio = [&](int64_t ns) {
      return whole > 0 ? static_cast<double>(ns) / static_cast<double>(whole) : 0;
    };
    CategoryShare row{
        categories.all()[c],     sum.ns, sum.samples, wilson(ratio(sum.ns), on_cpu.effective()),
        ratio(sum.inclusive_ns), ""};
    int64_t most = -1;
    FunctionIndex top = 0;
    for (auto [function, ns] : sum.leaves) {
      if (std::tuple(ns, top) > std::tuple(most, function)) most = ns, top = function;
    }
    if (most >= 0) row.top_function = tree.functions()[top].name;
    shares.push_back(std::move(row));
  }
  // Breakdowns in the order of their rules, the heaviest first in each.
  std::unordered_map<std::string, size_t> rank;
  for (const Category& category : categories.all()) {
    rank.try_emplace(category.breakdown, rank.size());
  }
  std::stable_sort(shares.begin(), shares.end(), [&](const auto& a, const auto& b) {
    return std::tuple(rank[a.category.breakdown], b.time_ns) <
           std::tuple(rank[b.category.breakdown], a.time_ns);
  });
  return shares;
}

}  // namespace assay::analysis
