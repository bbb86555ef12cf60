// StackFeatures: which name sets each function and each call path of a run matches.
//
// Every function's name is compared once; a path's features are its caller's and its own
// function's, and equal collections are stored once, so that a run of any size has few of them. In:
// a CallTree (must outlive it) and the name sets of the rules. Out: set membership by function and
// by path in constant time. Read-only once made. Failures: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/profile/call_tree.h"
#include "analysis/rules/name_pattern.h"
#include "analysis/rules/rule_set.h"

namespace assay::analysis {

using SetIndex = uint32_t;
inline constexpr SetIndex kNoSet = UINT32_MAX;

// The name sets of all rules, by number; equal sets are one.
class NameSets {
 public:
  SetIndex add(const NameSet& names);  // kNoSet for an empty one
  size_t size() const { return sets_.size(); }
  // Numbers of the sets that a function belongs to, ascending.
  std::vector<SetIndex> matching(const Function& function) const;

 private:
  struct Set {
    std::vector<NamePattern> modules;
    bool any_function = false;
  };
  struct Owned {
    NamePattern pattern;
    SetIndex set;
  };
  void hit(SetIndex set, std::string_view module, std::vector<SetIndex>& out) const;

  std::vector<Set> sets_;
  std::map<std::vector<std::string>, SetIndex> known_;
  std::unordered_map<std::string, std::vector<SetIndex>> exact_;
  std::unordered_map<std::string, std::vector<Owned>> by_prefix_;  // first kPrefix characters
  std::vector<Owned> others_;
};

using FeatureIndex = uint32_t;  // 0: no set at all

class StackFeatures {
 public:
  StackFeatures(const CallTree& tree, const NameSets& sets);

  bool function_has(FunctionIndex function, SetIndex set) const {
    return has(of_function_[function], set);
  }
  bool path_has(PathIndex path, SetIndex set) const { return has(of_path_[path], set); }
  FeatureIndex of_function(FunctionIndex function) const { return of_function_[function]; }
  FeatureIndex of_path(PathIndex path) const { return of_path_[path]; }
  bool has(FeatureIndex feature, SetIndex set) const;
  const std::vector<SetIndex>& sets_of(FeatureIndex feature) const { return features_[feature]; }
  size_t feature_count() const { return features_.size(); }

 private:
  FeatureIndex intern(std::vector<SetIndex> sets);

  std::vector<std::vector<SetIndex>> features_;
  std::map<std::vector<SetIndex>, FeatureIndex> index_;
  std::vector<FeatureIndex> of_function_;
  std::vector<FeatureIndex> of_path_;
};

}  // namespace assay::analysis
