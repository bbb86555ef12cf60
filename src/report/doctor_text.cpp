#include "report/doctor_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::report {
namespace {

using model::Check;
using model::CheckStatus;

constexpr size_t kStatusWidth = 9;

const char* colour_of(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return "\x1b[32m";
    case CheckStatus::limited:
      return "\x1b[33m";
    case CheckStatus::missing:
      return "\x1b[31m";
  }
  return "";
}

std::string painted(CheckStatus status, bool colour) {
  std::string name = check_status_name(status);
  std::string padding(kStatusWidth - std::min(kStatusWidth, name.size()), ' ');
  return colour ? colour_of(status) + name + "\x1b[0m" + padding : name + padding;
}

// Lines after the first keep the column: a detail may list candidates.
std::string indented(const std::string& text, size_t column) {
  std::string result;
  for (char c : text) {
    result.push_back(c);
    if (c == '\n') result.append(column, ' ');
  }
  return result;
}

}  // namespace

const char* check_status_name(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return "ok";
    case CheckStatus::limited:
      return "limited";
    case CheckStatus::missing:
      return "missing";
  }
  return "?";
}

std::string doctor_text(const std::vector<Check>& checks, bool colour) {
  size_t name_width = 0;
  for (const Check& check : checks) name_width = std::max(name_width, check.name.size());
  const size_t column = kStatusWidth + name_width + 2;
  std::string text;
  size_t counts[3] = {};
  for (const Check& check : checks) {
    ++counts[static_cast<size_t>(check.status)];
    text += fmt::format("{}{:<{}}  {}\n", painted(check.status, colour), check.name, name_width,
                        indented(check.detail, column));
    if (check.status == CheckStatus::ok) continue;
    std::string margin(column, ' ');
    if (!check.cost.empty())
      text += fmt::format("{}cost: {}\n", margin, indented(check.cost, column));
    if (!check.remedy.empty())
      text += fmt::format("{}try:  {}\n", margin, indented(check.remedy, column));
  }
  return text + fmt::format("\n{} ok, {} limited, {} missing\n", counts[0], counts[1], counts[2]);
}

std::string doctor_json(const std::vector<Check>& checks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  bool ok = true;
  for (const Check& check : checks) {
    ok = ok && check.status != CheckStatus::missing;
    list.push_back({{"name", check.name},
                    {"status", check_status_name(check.status)},
                    {"detail", check.detail},
                    {"cost", check.cost},
                    {"remedy", check.remedy}});
    if (!check.log.empty()) list.back()["log"] = check.log;
  }
  nlohmann::ordered_json document{{"ok", ok}, {"checks", list}};
  // Paths may hold bytes that are no UTF-8.
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace assay::report
