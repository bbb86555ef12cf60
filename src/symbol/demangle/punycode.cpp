#include "symbol/demangle/punycode.h"

#include <algorithm>

namespace assay::symbol {

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  } else if (code < 0x10000) {
    out += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
            static_cast<char>(0x80 | (code & 0x3f))};
  } else {
    out += {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3f)),
            static_cast<char>(0x80 | (code >> 6 & 0x3f)), static_cast<char>(0x80 | (code & 0x3f))};
  }
}

std::optional<std::string> decode_punycode(std::string_view text) {
  size_t split = text.rfind('_');
  std::u32string out;
  std::string_view deltas = text;
  if (split != std::string_view::npos) {
    for (char c : text.substr(0, split)) out += static_cast<unsigned char>(c);
    deltas = text.substr(split + 1);
  }
  uint64_t code = 128, at = 0, bias = 72;
  for (size_t i = 0; i < deltas.size();) {
    uint64_t before = at, weight = 1;
    for (uint64_t k = 36;; k += 36) {
      if (i >= deltas.size() || weight > UINT32_MAX) return std::nullopt;
      char c = deltas[i++];
      uint64_t digit = c >= 'a' && c <= 'z' ? c - 'a' : c >= '0' && c <= '9' ? c - '0' + 26 : 99;
      if (digit == 99) return std::nullopt;
      at += digit * weight;
      uint64_t threshold =
          std::clamp<int64_t>(static_cast<int64_t>(k) - static_cast<int64_t>(bias), 1, 26);
      if (digit < threshold) break;
      weight *= 36 - threshold;
    }
    uint64_t count = out.size() + 1;
    uint64_t delta = before == 0 ? (at - before) / 700 : (at - before) / 2;
    delta += delta / count;
    uint64_t steps = 0;
    for (; delta > 455; steps += 36) delta /= 35;
    bias = steps + 36 * delta / (delta + 38);
    code += at / count;
    at %= count;
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || out.size() > 1024)
      return std::nullopt;
    out.insert(out.begin() + static_cast<ptrdiff_t>(at++), static_cast<char32_t>(code));
  }
  std::string utf8;
  for (char32_t c : out) append_utf8(utf8, c);
  return utf8;
}

}  // namespace assay::symbol
