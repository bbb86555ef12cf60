#include "unwind/table/row_writer.h"

#include <algorithm>
#include <cstring>

#include "unwind/arch_x86_64.h"
#include "unwind/table/table.h"

namespace assay::unwind {

namespace {

using Arch = X86_64;
using Kind = RegisterRule::Kind;

constexpr size_t kMaxRows = 1 << 25;
constexpr size_t kMaxInterned = 0xfffe;
constexpr size_t kMaxExpressionBytes = 1 << 24;
constexpr size_t kMaxOneExpression = 4096;

uint64_t align_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

template <class T>
std::string_view as_key(const T* items, size_t count) {
  return {reinterpret_cast<const char*>(items), count * sizeof(T)};
}

// Appends an array 8-aligned; gives its offset.
template <class T>
uint64_t lay(std::vector<std::byte>& out, const T* items, size_t count) {
  out.resize(align_up(out.size(), 8));
  uint64_t at = out.size();
  out.resize(at + count * sizeof(T));
  if (count > 0) std::memcpy(out.data() + at, items, count * sizeof(T));
  return at;
}

bool fits_int32(int64_t value) {
  return value == static_cast<int32_t>(value);
}

}  // namespace

RowWriter::RowWriter(std::vector<Segment> segments) : segments_(std::move(segments)) {
  for (Segment& s : segments_) {
    s.text = align_up(text_bytes_, kPageBytes);
    text_bytes_ = s.text + s.bytes;
  }
}

void RowWriter::append(uint64_t text, uint32_t rule_bits, uint16_t saved) {
  if (!row_text_.empty()) {
    if (text < row_text_.back()) return;
    if (row_text_.size() == kMaxRows) return;
    if (text == row_text_.back()) {  // nothing held in between
      row_bits_.back() = rule_bits, row_saved_.back() = saved;
      return;
    }
    if (row_bits_.back() == rule_bits && row_saved_.back() == saved) {
      // Each segment begins with a row of its own, so that none carries over from another.
      bool begins_segment = std::ranges::any_of(segments_, [&](auto& s) { return s.text == text; });
      if (!begins_segment) return;
    }
  }
  bool is_last = row_text_.size() == kMaxRows - 1;  // it holds for all that follows
  row_text_.push_back(text);
  row_bits_.push_back(is_last ? kNotUnderstood : rule_bits);
  row_saved_.push_back(is_last ? uint16_t{0} : saved);
}

// Registers whose slot the function has left below sp, having had it above: compilers go on naming
// the slot after they popped it, but what is below sp may be gone and is not copied. The value is
// back in the register by then. A slot that was below sp from the start (the red zone) is not
// meant.
uint32_t RowWriter::popped(const RuleSet& rules) {
  if (rules.cfa != RuleSet::Cfa::reg_offset) return 0;
  uint32_t below = 0;
  for (int reg = 0; reg < Arch::kRegisters; ++reg) {
    if (rules.regs[reg].kind != Kind::offset || reg == Arch::kPc) continue;
    int64_t above_sp = 0;
    bool is_below = rules.cfa_reg == Arch::kSp &&
                    !__builtin_add_overflow(rules.cfa_offset, rules.regs[reg].value, &above_sp) &&
                    above_sp < 0;
    if (is_below)
      below |= 1u << reg;
    else
      seen_saved_ |= 1u << reg;
  }
  return below & seen_saved_ & Arch::kCalleeSaved;
}

void RowWriter::add(uint64_t text, const RuleSet* rules, bool is_signal_frame) {
  if (!rules) return append(text, kNotUnderstood, 0);
  RuleSet restored;
  if (uint32_t back = popped(*rules); back != 0 && !is_signal_frame) {
    restored = *rules;
    for (int reg = 0; reg < Arch::kRegisters; ++reg) {
      if (back >> reg & 1) restored.regs[reg] = {Kind::same, 0, {}};
    }
    rules = &restored;
    last_version_ = kNoVersion;
  }
  if (auto bits = Arch::compact(*rules, is_signal_frame)) {
    append(text, *bits, saved_set(*rules));
  } else {
    append(text, full_rule(*rules, is_signal_frame), 0);
  }
  if (rules == &restored) last_version_ = kNoVersion;
}

bool RowWriter::intern_expression(std::span<const std::byte> bytes, int32_t& at) {
  if (bytes.size() > kMaxOneExpression) return false;
  std::string key(as_key(bytes.data(), bytes.size()));
  auto found = expression_ids_.find(key);
  if (found != expression_ids_.end()) {
    at = found->second;
    return true;
  }
  if (expressions_.size() + key.size() > kMaxExpressionBytes) return false;
  at = static_cast<int32_t>(expressions_.size());
  expressions_ += key;
  expression_ids_.emplace(std::move(key), at);
  return true;
}

// Adds what a rule says of a register; nothing when it only restates the architecture's default.
bool RowWriter::encode(int reg, const RegisterRule& rule, std::vector<RegRule>& out) {
  bool callee_saved = Arch::kCalleeSaved >> reg & 1;
  RegRule encoded{static_cast<uint8_t>(reg), RegKind::undefined, 0, 0};
  switch (rule.kind) {
    case Kind::unspecified:
      return true;
    case Kind::undefined:
      if (!callee_saved && reg != Arch::kPc) return true;
      break;
    case Kind::same:
      if (callee_saved) return true;
      encoded.kind = RegKind::same;
      break;
    case Kind::offset:
      encoded.kind = RegKind::at_cfa;
      break;
    case Kind::val_offset:
      encoded.kind = RegKind::is_cfa;
      break;
    case Kind::in_register:
      if (rule.value < 0 || rule.value >= Arch::kRegisters) return false;
      encoded.kind = RegKind::in_register;
      break;
    case Kind::expression:
      encoded.kind = RegKind::at_expression;
      break;
    case Kind::val_expression:
      encoded.kind = RegKind::is_expression;
      break;
  }
  if (rule.kind == Kind::expression || rule.kind == Kind::val_expression) {
    if (!intern_expression(rule.expression, encoded.value)) return false;
    encoded.expression_bytes = static_cast<uint16_t>(rule.expression.size());
  } else {
    if (!fits_int32(rule.value)) return false;
    encoded.value = static_cast<int32_t>(rule.value);
  }
  out.push_back(encoded);
  return true;
}

RuleSpan RowWriter::intern_span(const std::vector<RegRule>& rules) {
  std::string key(as_key(rules.data(), rules.size()));
  auto found = span_ids_.find(key);
  if (found == span_ids_.end()) {
    RuleSpan span{static_cast<uint32_t>(reg_rules_.size()), static_cast<uint32_t>(rules.size())};
    reg_rules_.insert(reg_rules_.end(), rules.begin(), rules.end());
    found = span_ids_.emplace(std::move(key), span).first;
  }
  return found->second;
}

uint16_t RowWriter::saved_set(const RuleSet& rules) {
  if (rules.version == last_version_) return last_saved_;
  last_version_ = rules.version;
  std::vector<RegRule> list;
  bool good = true;
  for (int reg = 0; reg < Arch::kRegisters; ++reg) {
    if (reg == Arch::kFp || reg == Arch::kSp || reg == Arch::kPc) continue;
    good = good && encode(reg, rules.regs[reg], list);
  }
  if (!good) return last_saved_ = kSavedUnknown;
  if (list.empty()) return last_saved_ = 0;
  std::string key(as_key(list.data(), list.size()));
  if (auto found = saved_ids_.find(key); found != saved_ids_.end())
    return last_saved_ = found->second;
  if (saved_sets_.size() >= kMaxInterned) return last_saved_ = kSavedUnknown;
  auto id = static_cast<uint16_t>(saved_sets_.size());
  saved_sets_.push_back(intern_span(list));
  saved_ids_.emplace(std::move(key), id);
  return last_saved_ = id;
}

uint32_t RowWriter::full_rule(const RuleSet& rules, bool is_signal_frame) {
  FullRule full{};
  full.is_signal_frame = is_signal_frame;
  if (rules.cfa == RuleSet::Cfa::expression) {
    full.cfa_is_expression = 1;
    full.expression_bytes = static_cast<uint16_t>(rules.cfa_expression.size());
    if (!intern_expression(rules.cfa_expression, full.cfa_value)) return kNotUnderstood;
  } else if (rules.cfa == RuleSet::Cfa::reg_offset) {
    if (rules.cfa_reg >= Arch::kRegisters || !fits_int32(rules.cfa_offset)) return kNotUnderstood;
    full.cfa_reg = static_cast<uint8_t>(rules.cfa_reg);
    full.cfa_value = static_cast<int32_t>(rules.cfa_offset);
  } else {
    return kNotUnderstood;
  }
  if (rules.regs[Arch::kPc].kind == Kind::unspecified) return kNotUnderstood;
  std::vector<RegRule> list;
  for (int reg = 0; reg < Arch::kRegisters; ++reg) {
    if (!encode(reg, rules.regs[reg], list)) return kNotUnderstood;
  }
  full.regs = intern_span(list);
  std::string key(as_key(&full, 1));
  auto found = full_ids_.find(key);
  if (found == full_ids_.end()) {
    if (full_rules_.size() >= kMaxInterned) return kNotUnderstood;
    found = full_ids_.emplace(std::move(key), static_cast<uint16_t>(full_rules_.size())).first;
    full_rules_.push_back(full);
  }
  return Row::pack(RowType::full, 0, found->second);
}

std::vector<std::byte> RowWriter::finish(uint16_t machine, std::string_view build_id,
                                         uint32_t flags) const {
  std::vector<Row> rows(row_bits_.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].bits = row_bits_[i] | static_cast<uint32_t>(row_text_[i] % kPageBytes);
  }
  std::vector<uint32_t> index(align_up(text_bytes_, kPageBytes) / kPageBytes + 1);
  size_t row = 0;
  for (size_t page = 0; page < index.size(); ++page) {
    while (row < rows.size() && row_text_[row] < page * kPageBytes) ++row;
    index[page] = static_cast<uint32_t>(row);
  }

  TableHeader h{};
  std::memcpy(h.magic, kTableMagic, sizeof h.magic);
  h.version = kTableVersion;
  h.header_bytes = sizeof h;
  build_id.copy(h.build_id, sizeof h.build_id - 1);
  h.machine = machine;
  h.flags = flags;
  h.text_bytes = text_bytes_;
  h.segment_count = static_cast<uint32_t>(segments_.size());
  h.page_count = static_cast<uint32_t>(index.size() - 1);
  h.row_count = static_cast<uint32_t>(rows.size());
  h.saved_set_count = static_cast<uint32_t>(saved_sets_.size());
  h.full_rule_count = static_cast<uint32_t>(full_rules_.size());
  h.reg_rule_count = static_cast<uint32_t>(reg_rules_.size());
  h.expression_bytes = static_cast<uint32_t>(expressions_.size());

  std::vector<std::byte> out(sizeof h);
  h.segments_at = lay(out, segments_.data(), segments_.size());
  h.index_at = lay(out, index.data(), index.size());
  h.rows_at = lay(out, rows.data(), rows.size());
  h.saved_at = lay(out, row_saved_.data(), row_saved_.size());
  h.saved_sets_at = lay(out, saved_sets_.data(), saved_sets_.size());
  h.full_rules_at = lay(out, full_rules_.data(), full_rules_.size());
  h.reg_rules_at = lay(out, reg_rules_.data(), reg_rules_.size());
  h.expressions_at = lay(out, expressions_.data(), expressions_.size());
  h.total_bytes = out.size();
  std::memcpy(out.data(), &h, sizeof h);
  h.checksum = table_checksum(out);
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

}  // namespace assay::unwind
