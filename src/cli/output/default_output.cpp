#include "cli/output/default_output.h"

#include <cctype>
#include <ctime>

#include <fmt/format.h>

namespace assay::cli {

std::string default_output(const std::string& target) {
  std::string name;
  for (char c : target) {
    bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    if (kept) name += c;
    if (!kept && !name.empty() && name.back() != '-') name += '-';
  }
  constexpr size_t kLongest = 40;
  name = name.substr(0, kLongest);
  char stamp[32];
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  return fmt::format("{}-{}.assay", name.empty() ? "run" : name, stamp);
}

}  // namespace assay::cli
