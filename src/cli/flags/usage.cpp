#include "cli/flags/usage.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include <fmt/format.h>

namespace assay::cli {
namespace {

// Letters to insert, drop, replace, or swap with their neighbour.
size_t distance_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  std::iota(d[0].begin(), d[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

CLI::Validator whole_number(uint64_t least, uint64_t most) {
  auto check = [least, most](const std::string& text) {
    uint64_t value = 0;
    auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool negative = text.starts_with('-');
    bool digits = end == text.data() + text.size() && !text.empty();
    if (digits && status == std::errc() && value >= least && value <= most) return std::string();
    if (negative || (digits && status == std::errc::result_out_of_range) ||
        (digits && status == std::errc()))
      return fmt::format("{} is not between {} and {}", text, least, most);
    return fmt::format("'{}' is not a whole number", text);
  };
  return CLI::Validator(check, fmt::format("{}-{}", least, most));
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  std::string nearest;
  size_t best = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    if (word.size() >= 2 && name.starts_with(word)) return name;
    size_t distance = distance_between(word, name);
    if (distance >= best || distance >= name.size()) continue;
    best = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace assay::cli
