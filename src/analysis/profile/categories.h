// Categories: which category each call path belongs to, in each breakdown; a sample has exactly
// one.
//
// In the breakdown "subsystem" the innermost frame that a rule knows owns a path; code that no rule
// knows is the application's (in the program's own file), another library's, or the kernel's part
// that called it. The other breakdowns are views of a part (syscalls, RPC phases, …): what no rule
// of theirs knows is "everything else". In: rules and a CallTree; out: owners by path, and shares
// with their intervals. `inclusive` shares count a category wherever it is on the stack: those
// overlap. Read-only once made. Failures: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/interval.h"
#include "analysis/profile/call_tree.h"
#include "analysis/profile/profile.h"
#include "analysis/rules/stack_features.h"

namespace assay::analysis {

inline constexpr std::string_view kSubsystem = "subsystem";

struct Category {
  std::string breakdown;
  std::string id;
  std::string name;
  CategoryRole role = CategoryRole::none;
  std::optional<UsualSuspect> suspect;
};

using CategoryIndex = uint32_t;

class Categories {
 public:
  Categories(const RuleSet& rules, NameSets& sets);
  void place(const CallTree& tree, const StackFeatures& features, const run::Contents& run);

  const std::vector<Category>& all() const { return all_; }
  size_t breakdowns() const { return breakdowns_.size(); }
  CategoryIndex owner(size_t breakdown, PathIndex path) const { return owner_[breakdown][path]; }
  CategoryRole role(PathIndex path) const { return all_[owner_[0][path]].role; }
  // Functions that no rule of the subsystem breakdown knows.
  bool unclassified(FunctionIndex function) const { return unclassified_[function]; }
  bool application(FunctionIndex function) const { return application_[function]; }

 private:
  struct Candidate {
    CategoryIndex category;
    SetIndex names;
    SetIndex under;
    bool of_all = false;  // any function below `under`: says nothing of the function itself
  };
  struct Breakdown {
    std::string name;
    std::vector<Candidate> candidates;  // in order of preference
    CategoryIndex rest = 0;
  };
  size_t breakdown(const std::string& name);
  CategoryIndex add(Category category);
  void place_one(size_t breakdown, const CallTree& tree, const StackFeatures& features);
  CategoryIndex unknown_owner(const CallTree& tree, PathIndex path, CategoryIndex above) const;

  std::vector<Category> all_;
  std::vector<Breakdown> breakdowns_;  // 0 is kSubsystem
  std::vector<std::vector<CategoryIndex>> owner_;
  std::vector<uint8_t> unclassified_, application_;
  CategoryIndex app_ = 0, library_ = 0, kernel_ = 0, unnamed_ = 0, no_stack_ = 0;
};

// Whose CPU time of a role it is, for the most part: the application's function closest above it,
// and the function outside the kernel that it went in by. Empty names: there is none.
struct RoleCaller {
  std::string caller, entry;
  double share = 0;  // of the role's CPU time
};

struct CategoryShare {
  Category category;
  int64_t time_ns = 0;
  uint64_t samples = 0;
  Estimate share;              // exclusive: the shares of one breakdown add up to 1
  double inclusive_share = 0;  // anywhere on the stack: these overlap
  std::string top_function;    // the leaf that took most of it
};

// Heaviest first within each breakdown; categories without time are left out.
std::array<RoleCaller, kCategoryRoles> role_callers(const Categories& categories,
                                                    const CallTree& tree,
                                                    const OnCpuBuilder& on_cpu);
std::vector<CategoryShare> category_shares(const Categories& categories, const CallTree& tree,
                                           const OnCpuBuilder& on_cpu);

}  // namespace assay::analysis
