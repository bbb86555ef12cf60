// read_rules(): the only place that knows TOML.
#define TOML_ENABLE_FORMATTERS 0
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
// A wrong rule file is an error with its line, never an abort.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <array>

#include <toml++/toml.h>

#include "analysis/rules/rule_set.h"
#include "analysis/vitals.h"

namespace assay::analysis {
namespace {

// One table of one file, with the words for what is wrong in it.
class RuleTable {
 public:
  RuleTable(const toml::table& table, std::string_view file, RuleSet& set)
      : table_(table), file_(file), set_(set) {
    id_ = text("id");
  }

  const std::string& id() const { return id_; }
  bool failed() const { return failed_; }
  RuleOrigin origin() const { return {file_, static_cast<uint32_t>(table_.source().begin.line)}; }

  void wrong(const toml::node* at, std::string what) {
    failed_ = true;
    auto line = static_cast<uint32_t>((at ? at : &table_)->source().begin.line);
    set_.errors.push_back({file_, line, id_, std::move(what)});
  }

  std::string text(const char* key) {
    const toml::node* node = table_.get(key);
    if (!node) return "";
    auto value = node->value<std::string>();
    if (!value || !node->is_string()) wrong(node, std::string(key) + " must be text");
    return value.value_or("");
  }
  std::string needed(const char* key) {
    std::string value = text(key);
    if (value.empty() && !failed_) wrong(nullptr, std::string(key) + " is missing");
    return value;
  }
  std::optional<double> number(const char* key) {
    const toml::node* node = table_.get(key);
    if (!node) return {};
    if (!node->is_number()) {
      wrong(node, std::string(key) + " must be a number");
      return {};
    }
    return node->value<double>();
  }
  bool flag(const char* key) {
    const toml::node* node = table_.get(key);
    if (!node) return false;
    if (!node->is_boolean()) wrong(node, std::string(key) + " must be true or false");
    return node->value<bool>().value_or(false);
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> list;
    const toml::node* node = table_.get(key);
    if (!node) return list;
    const toml::array* array = node->as_array();
    if (!array) {
      wrong(node, std::string(key) + " must be a list of texts");
      return list;
    }
    for (const toml::node& one : *array) {
      auto value = one.value<std::string>();
      if (!one.is_string() || value->empty()) {
        wrong(&one, std::string(key) + " must hold texts that are not empty");
        return list;
      }
      list.push_back(std::move(*value));
    }
    return list;
  }
  std::vector<BlockKind> kinds(const char* key) {
    std::vector<BlockKind> list;
    for (const std::string& name : texts(key)) {
      int kind = 0;
      while (kind < kBlockKindCount && block_kind_id(static_cast<BlockKind>(kind)) != name) ++kind;
      if (kind == kBlockKindCount) {
        wrong(table_.get(key), std::string(key) + ": there is no kind of wait named " + name);
        return list;
      }
      list.push_back(static_cast<BlockKind>(kind));
    }
    return list;
  }
  NameSet names(const char* functions, const char* modules) {
    return {texts(functions), texts(modules)};
  }
  const toml::array* tables(const char* key) {
    const toml::node* node = table_.get(key);
    if (!node) return nullptr;
    const toml::array* array = node->as_array();
    if (!array) wrong(node, std::string(key) + " must be a list");
    return array;
  }
  const toml::table* table(const char* key) {
    const toml::node* node = table_.get(key);
    if (!node) return nullptr;
    if (!node->as_table()) wrong(node, std::string(key) + " must be a table");
    return node->as_table();
  }
  // A misspelt key would otherwise be a rule that silently does something else.
  template <size_t N>
  void only(const std::array<std::string_view, N>& known) {
    for (const auto& [key, node] : table_) {
      bool found = false;
      for (std::string_view one : known) found = found || one == key.str();
      if (!found) wrong(&node, "there is no key named " + std::string(key.str()));
    }
  }

 private:
  const toml::table& table_;
  std::string file_;
  RuleSet& set_;
  std::string id_;
  bool failed_ = false;
};

void read_category(RuleTable rule, const std::string& breakdown, RuleSet& set) {
  rule.only(std::array<std::string_view, 7>{"id", "name", "role", "functions", "modules", "under",
                                            "under_modules"});
  CategoryRule category;
  category.breakdown = breakdown;
  category.id = rule.needed("id");
  category.name = rule.needed("name");
  category.role = rule.text("role");
  category.names = rule.names("functions", "modules");
  category.under = rule.names("under", "under_modules");
  category.origin = rule.origin();
  if (category.names.empty() && !rule.failed())
    rule.wrong(nullptr, "functions or modules are missing");
  if (!rule.failed()) set.categories.push_back(std::move(category));
}

void read_idle(RuleTable rule, bool busy, RuleSet& set) {
  rule.only(
      std::array<std::string_view, 6>{"id", "name", "functions", "modules", "waits", "within"});
  IdleRule idle;
  idle.busy = busy;
  idle.id = rule.needed("id");
  idle.name = rule.needed("name");
  idle.names = rule.names("functions", "modules");
  idle.kinds = rule.kinds("waits");
  idle.origin = rule.origin();
  if (auto within = rule.number("within")) {
    if (*within < 0 || *within > 100) rule.wrong(nullptr, "within must be between 0 and 100");
    idle.within = static_cast<uint32_t>(*within);
  }
  if (idle.names.empty() && !rule.failed()) rule.wrong(nullptr, "functions or modules are missing");
  if (!rule.failed()) set.idle.push_back(std::move(idle));
}

void read_conditions(RuleTable& rule, std::string_view file, RuleSet& set, DetectorRule& out) {
  if (const toml::array* when = rule.tables("when")) {
    for (const toml::node& node : *when) {
      const toml::table* table = node.as_table();
      if (!table) {
        rule.wrong(&node, "when must hold tables");
        return;
      }
      RuleTable condition(*table, file, set);
      condition.only(std::array<std::string_view, 3>{"metric", "above", "below"});
      MetricCondition metric{condition.needed("metric"), condition.number("above"),
                             condition.number("below")};
      if (!condition.failed() && !is_vital(metric.metric)) {
        condition.wrong(nullptr, "there is no metric named " + metric.metric);
      }
      if (!metric.above && !metric.below && !condition.failed()) {
        condition.wrong(nullptr, "when needs above or below");
      }
      if (condition.failed()) rule.wrong(table, "its condition is wrong");
      out.when.push_back(std::move(metric));
    }
  }
  if (const toml::table* table = rule.table("fact")) {
    RuleTable fact(*table, file, set);
    fact.only(std::array<std::string_view, 2>{"key", "contains"});
    out.fact = FactCondition{fact.needed("key"), fact.text("contains")};
    if (fact.failed()) rule.wrong(table, "its fact is wrong");
  }
}

bool read_measure(RuleTable& rule, DetectorRule& out) {
  using enum DetectorRule::Measure;
  static constexpr std::pair<std::string_view, DetectorRule::Measure> kMeasures[]{
      {"cpu", cpu},       {"wait", wait},       {"fact", fact},
      {"metric", metric}, {"hottest", hottest}, {"lock", lock}};
  std::string name = rule.needed("measure");
  for (const auto& [text, measure] : kMeasures) {
    if (name != text) continue;
    out.measure = measure;
    return true;
  }
  if (!rule.failed())
    rule.wrong(nullptr, "measure must be cpu, wait, fact, metric, hottest or lock");
  return false;
}

void read_detector(RuleTable rule, std::string_view file, RuleSet& set) {
  rule.only(std::array<std::string_view, 21>{
      "id",        "group",   "title", "cause",         "because",   "recommendation",  "measure",
      "functions", "modules", "under", "under_modules", "leaf_only", "waits",           "share",
      "when",      "fact",    "shape", "withholds",     "example",   "counter_example", "note"});
  DetectorRule out;
  out.id = rule.needed("id");
  out.group = rule.text("group");
  out.title = rule.needed("title");
  out.cause = rule.needed("cause");
  out.because = rule.needed("because");
  out.recommendation = rule.needed("recommendation");
  read_measure(rule, out);
  out.names = rule.names("functions", "modules");
  out.under = rule.names("under", "under_modules");
  out.leaf_only = rule.flag("leaf_only");
  out.kinds = rule.kinds("waits");
  out.share = rule.number("share").value_or(0);
  out.lock_shape = rule.text("shape");
  out.withholds = rule.flag("withholds");
  out.example = rule.texts("example");
  out.counter_example = rule.texts("counter_example");
  out.origin = rule.origin();
  read_conditions(rule, file, set, out);
  using enum DetectorRule::Measure;
  if (!rule.failed()) {
    if (out.measure == cpu && out.names.empty())
      rule.wrong(nullptr, "functions or modules are missing");
    if (out.measure == fact && !out.fact) rule.wrong(nullptr, "fact is missing");
    if (out.measure == metric && out.when.empty()) rule.wrong(nullptr, "when is missing");
    if (out.measure == wait && out.names.empty() && out.kinds.empty()) {
      rule.wrong(nullptr, "waits or functions are missing");
    }
  }
  if (!rule.failed()) set.detectors.push_back(std::move(out));
}

// What no rule file needs, and the parser should not have to meet.
const char* unreadable(std::string_view text) {
  size_t brackets = 0;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool control = byte < 0x20 && c != '\n' && c != '\r' && c != '\t';
    if (control || byte == 0x7f) return "holds control characters: it is no text file";
    brackets = c == '[' || c == '{' ? brackets + 1 : 0;
    if (brackets > 32) return "is nested too deeply";
  }
  return nullptr;
}

template <class Read>
void read_each(const toml::table& root, const char* key, std::string_view file, RuleSet& set,
               Read&& read) {
  const toml::node* node = root.get(key);
  if (!node) return;
  const toml::array* array = node->as_array();
  if (!array || !array->is_array_of_tables()) {
    set.errors.push_back({std::string(file), static_cast<uint32_t>(node->source().begin.line), "",
                          std::string(key) + " must be written as [[" + key + "]]"});
    return;
  }
  for (const toml::node& one : *array) read(RuleTable(*one.as_table(), file, set));
}

}  // namespace

void read_rules(const RuleText& file, RuleSet& set) {
  if (const char* why = unreadable(file.text)) {
    set.errors.push_back({std::string(file.path), 0, "", why});
    return;
  }
  toml::parse_result parsed = toml::parse(file.text, file.path);
  std::string path(file.path);
  if (!parsed) {
    set.errors.push_back({path, static_cast<uint32_t>(parsed.error().source().begin.line), "",
                          std::string(parsed.error().description())});
    return;
  }
  const toml::table& root = parsed.table();
  std::string breakdown = root["breakdown"].value_or(std::string("subsystem"));
  for (const auto& [key, node] : root) {
    std::string_view k = key.str();
    if (k == "breakdown" || k == "category" || k == "idle" || k == "busy" || k == "detector") {
      continue;
    }
    set.errors.push_back({path, static_cast<uint32_t>(node.source().begin.line), "",
                          "there is no kind of rule named " + std::string(k)});
  }
  read_each(root, "category", path, set,
            [&](RuleTable rule) { read_category(std::move(rule), breakdown, set); });
  read_each(root, "idle", path, set,
            [&](RuleTable rule) { read_idle(std::move(rule), false, set); });
  read_each(root, "busy", path, set,
            [&](RuleTable rule) { read_idle(std::move(rule), true, set); });
  read_each(root, "detector", path, set,
            [&](RuleTable rule) { read_detector(std::move(rule), path, set); });
}

}  // namespace assay::analysis
