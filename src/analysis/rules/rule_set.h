// RuleSet: what the rule files say, checked: categories, idle waits, detectors.
//
// In: TOML texts, built in (rules/ of the source tree) and the user's own (--rules DIR, whose rules
// come first). Out: RuleSet. A file or rule that is wrong is left out and named in `errors` with
// file, line and rule; the rest still works. docs/rules.md describes the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/locks/lock_shape.h"
#include "analysis/profile/category_role.h"
#include "analysis/rules/cause.h"
#include "analysis/time/block_kind.h"
#include "analysis/verdict/usual_suspect.h"
#include "analysis/verdict/verdict_kind.h"
#include "analysis/verdict/vital.h"

namespace assay::analysis {

// Functions by name and module; empty lists ask for nothing. `under`: another that calls them.
struct NameSet {
  std::vector<std::string> functions;
  std::vector<std::string> modules;
  bool empty() const { return functions.empty() && modules.empty(); }
};

struct RuleOrigin {
  std::string file;
  uint32_t line = 0;
};

struct CategoryRule {
  std::string breakdown;  // "subsystem" holds every sample; others are views of a part
  std::string id;
  std::string name;
  CategoryRole role = CategoryRole::none;  // what verdicts know it as
  std::optional<UsualSuspect> suspect;     // what a report that clears it calls it
  NameSet names;
  NameSet under;
  RuleOrigin origin;
};

struct IdleRule {
  std::string id;
  std::string name;
  bool busy = false;             // the opposite: such a wait is never idle
  NameSet names;                 // the loop's frame; for a busy rule any frame of the stack
  std::vector<BlockKind> kinds;  // empty: every kind that can be a wait for work
  uint32_t within = 6;           // user frames between the wait and the loop's frame, at most
  RuleOrigin origin;
};

// One number the run must have.
struct MetricCondition {
  const VitalRow* vital = nullptr;
  std::optional<double> above;
  std::optional<double> below;
};

struct FactCondition {
  std::string key;       // of a process, or "host.KEY"
  std::string contains;  // empty: any value but "no"
};

struct DetectorRule {
  enum class Measure : uint8_t { cpu, wait, fact, metric, hottest, lock };
  std::string id;
  std::string title;
  Cause cause = Cause::on_cpu;
  std::string because;
  std::string recommendation;
  Measure measure = Measure::cpu;
  NameSet names;
  NameSet under;
  bool leaf_only = false;        // the innermost function itself, not what it calls
  std::vector<BlockKind> kinds;  // of waits
  double share = 0;              // the least that fires; 0: the usual (3 % CPU, 5 % of busy time)
  std::vector<MetricCondition> when;
  std::optional<FactCondition> fact;
  std::optional<LockShape> lock_shape;       // for lock; absent: any
  std::optional<VerdictKind> explains;       // it is the cause of such a verdict
  bool withholds = false;                    // the run cannot carry a verdict
  std::vector<std::string> example;          // a stack that it is about, root first
  std::vector<std::string> counter_example;  // one that it is not about
  RuleOrigin origin;
};

struct RuleError {
  std::string file;
  uint32_t line = 0;
  std::string rule;  // its id, where one could be read
  std::string what;
  std::string text() const;
};

struct RuleSet {
  std::vector<CategoryRule> categories;  // first match wins
  std::vector<IdleRule> idle;
  std::vector<DetectorRule> detectors;
  std::vector<RuleError> errors;
};

struct RuleText {
  std::string_view path;  // "idle/runtimes.toml"
  std::string_view text;
};

// The rules that are part of the program, in order of path.
const std::vector<RuleText>& built_in_rules();

// Adds one file's rules; what is wrong goes to set.errors.
void read_rules(const RuleText& file, RuleSet& set);

// The user's directories first, then the built-in ones. A detector or category of the user's with
// the id of a built-in one replaces it. An unreadable directory is an error in the set.
RuleSet load_rules(const std::vector<std::string>& directories);

// load_rules({}), read once.
const RuleSet& default_rules();

}  // namespace assay::analysis
