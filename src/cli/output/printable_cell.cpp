#include "cli/output/printable_cell.h"

#include <fmt/core.h>

namespace assay::cli {
namespace {

std::string escaped(const std::string& text) {
  std::string safe;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      safe += fmt::format("\\x{:02x}", byte);
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string cell_text(const run::SqlValue& value) {
  if (auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (auto* real = std::get_if<double>(&value)) return fmt::format("{:.6g}", *real);
  if (auto* text = std::get_if<std::string>(&value)) return escaped(*text);
  if (auto* blob = std::get_if<std::vector<uint8_t>>(&value))
    return fmt::format("<{} bytes>", blob->size());
  return "";
}

size_t display_width(const std::string& text) {
  size_t columns = 0;
  for (char c : text) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return columns;
}

}  // namespace assay::cli
