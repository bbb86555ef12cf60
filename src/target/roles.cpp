#include "target/roles.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::target {

std::string program_name(std::string_view exe) {
  constexpr std::string_view deleted = " (deleted)";
  if (exe.ends_with(deleted)) exe.remove_suffix(deleted.size());
  size_t slash = exe.rfind('/');
  return std::string(slash == exe.npos ? exe : exe.substr(slash + 1));
}

std::string RoleBook::next_worker() {
  return fmt::format("worker {}", workers_++);
}

std::string RoleBook::by_name(const std::string& exe) {
  std::string name = program_name(exe);
  if (name.empty()) name = "process";
  uint32_t number = named_[name]++;
  return number == 0 ? name : fmt::format("{} {}", name, number);
}

std::vector<std::string> RoleBook::assign_roots(const std::vector<std::string>& exes) {
  root_exes_.insert(exes.begin(), exes.end());
  if (exes.size() == 1) return {"main"};
  std::vector<std::string> roles;
  for (const std::string& exe : exes) {
    roles.push_back(root_exes_.size() == 1 ? next_worker() : by_name(exe));
  }
  return roles;
}

std::string RoleBook::assign(const std::string& exe) {
  return root_exes_.contains(exe) ? next_worker() : by_name(exe);
}

void RoleBook::give_back(const std::string& role) {
  if (workers_ > 0 && role == fmt::format("worker {}", workers_ - 1)) --workers_;
}

}  // namespace assay::target
