// RowWriter: gathers the rows of a table in ascending order, interning what rows share, and lays
// them out as bytes.
//
// In: segments first, then rules from the table builder, by virtual address upwards. Out: the
// table's bytes. What does not fit a row becomes a full rule; what fits nowhere is marked as not
// understood.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "unwind/table/cfi.h"
#include "unwind/table/table_format.h"

namespace assay::unwind {

class RowWriter {
 public:
  // `segments` with ascending, disjoint virtual addresses; their `text` is set here.
  explicit RowWriter(std::vector<Segment> segments);
  const std::vector<Segment>& segments() const { return segments_; }

  // From `text` on `rule_bits` hold, with nothing saved but what they say.
  void add(uint64_t text, uint32_t rule_bits) { append(text, rule_bits, 0); }
  // From `text` on `rules` hold; null: they cannot be understood.
  void add(uint64_t text, const RuleSet* rules, bool is_signal_frame);
  // Call between functions: rules of different functions have nothing in common.
  void begin_function() {
    last_version_ = kNoVersion;
    seen_saved_ = 0;
  }

  std::vector<std::byte> finish(uint16_t machine, std::string_view build_id, uint32_t flags) const;

 private:
  static constexpr uint64_t kNoVersion = ~uint64_t{0};

  void append(uint64_t text, uint32_t rule_bits, uint16_t saved);
  uint32_t popped(const RuleSet& rules);
  uint16_t saved_set(const RuleSet& rules);
  uint32_t full_rule(const RuleSet& rules, bool is_signal_frame);
  bool encode(int reg, const RegisterRule& rule, std::vector<RegRule>& out);
  bool intern_expression(std::span<const std::byte> bytes, int32_t& at);
  RuleSpan intern_span(const std::vector<RegRule>& rules);

  std::vector<Segment> segments_;
  uint64_t text_bytes_ = 0;
  std::vector<uint64_t> row_text_;  // each row's address; only its low byte is kept in the end
  std::vector<uint32_t> row_bits_;
  std::vector<uint16_t> row_saved_;
  std::vector<RuleSpan> saved_sets_{RuleSpan{0, 0}};
  std::vector<FullRule> full_rules_;
  std::vector<RegRule> reg_rules_;
  std::string expressions_;
  std::unordered_map<std::string, uint16_t> saved_ids_, full_ids_;
  std::unordered_map<std::string, RuleSpan> span_ids_;
  std::unordered_map<std::string, int32_t> expression_ids_;
  uint64_t last_version_ = kNoVersion;
  uint16_t last_saved_ = 0;
  uint32_t seen_saved_ = 0;  // bit i: in this function register i was saved in a slot above sp
};

}  // namespace assay::unwind
