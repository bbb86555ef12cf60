#include "report/printable.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "model/display_name.h"

namespace assay::report {
namespace {

constexpr uint32_t kInvalid = 0xffffffff;
constexpr size_t kLongestFolded = 16 * 1024;  // longer names are not made by compilers

struct CodePoint {
  uint32_t value = kInvalid;
  size_t bytes = 1;  // an invalid byte stands alone
};

// One code point of UTF-8, refusing overlong forms, surrogates and what is beyond U+10FFFF.
CodePoint next(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  size_t bytes = lead >= 0xf0 && lead < 0xf8 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead >= 0xf8 || text.size() < bytes) return {};
  uint32_t value = lead & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  static constexpr uint32_t kSmallest[]{0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kSmallest[bytes] || surrogate || value > 0x10ffff) return {};
  return {value, bytes};
}

// Characters that move the cursor, hide text or change its direction.
bool disturbs(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff0 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

int columns_of(uint32_t c) {
  bool combines = (c >= 0x300 && c < 0x370) || (c >= 0x1ab0 && c < 0x1b00) ||
                  (c >= 0x20d0 && c < 0x2100) || (c >= 0xfe00 && c < 0xfe10) ||
                  (c >= 0xfe20 && c < 0xfe30);
  if (combines) return 0;
  bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
              (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
              (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) ||
              (c >= 0x1f300 && c < 0x1fb00) || (c >= 0x20000 && c < 0x3fffe);
  return wide ? 2 : 1;
}

// The longest beginning of text that fits into `width` columns, in bytes.
size_t fitting_prefix(std::string_view text, int width) {
  size_t used = 0;
  while (used < text.size()) {
    CodePoint point = next(text.substr(used));
    width -= columns_of(point.value);
    if (width < 0) break;
    used += point.bytes;
  }
  return used;
}

size_t fitting_suffix(std::string_view text, int width) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t at = begin - 1;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
    width -= columns_of(next(text.substr(at)).value);
    if (width < 0) break;
    begin = at;
  }
  return text.size() - begin;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    CodePoint point = next(text);
    if (point.value == kInvalid) {
      safe += "\xef\xbf\xbd";
    } else if (!disturbs(point.value)) {
      safe += text.substr(0, point.bytes);
    } else if (point.value < 0x100) {
      safe += fmt::format("\\x{:02x}", point.value);
    } else {
      safe += fmt::format("\\u{:04x}", point.value);
    }
    text.remove_prefix(point.bytes);
  }
  return safe;
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    CodePoint point = next(text);
    if (point.value == 0x1b) {  // our own colour: printable() leaves no other
      text.remove_prefix(std::min(text.find('m'), text.size() - 1) + 1);
      continue;
    }
    width += columns_of(point.value);
    text.remove_prefix(point.bytes);
  }
  return width;
}

std::string elide_middle(std::string_view text, int width) {
  // A byte is at least one column or part of one, so short text needs no counting.
  if (static_cast<int64_t>(text.size()) <= width || display_width(text) <= width) {
    return std::string(text);
  }
  if (width <= 0) return "";
  int kept = width - 1;
  // The end names the function itself, the beginning its namespace: keep more of the end.
  int head = kept * 2 / 5;
  std::string_view tail = text.substr(text.size() - fitting_suffix(text, kept - head));
  return std::string(text.substr(0, fitting_prefix(text, head))) + "…" + std::string(tail);
}

std::string fitted(std::string_view text, int width) {
  return elide_middle(printable(text), width);
}

std::string function_name(std::string_view name, int width) {
  if (name.size() > kLongestFolded) return fitted(name, width);
  std::string folded = printable(model::fold_name(name));
  if (display_width(folded) <= width) return folded;
  return fitted(model::short_name(name), width);
}

std::string left(std::string_view text, int width) {
  std::string cell = fitted(text, width);
  cell.append(static_cast<size_t>(std::max(0, width - display_width(cell))), ' ');
  return cell;
}

std::string right(std::string_view text, int width) {
  std::string cell = fitted(text, width);
  return std::string(static_cast<size_t>(std::max(0, width - display_width(cell))), ' ') + cell;
}

}  // namespace assay::report
