#include "model/other_user.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

namespace assay::model {
namespace {

constexpr std::string_view kAll = "others";
constexpr std::string_view kOne = "other ";
constexpr size_t kMostRead = 64;  // a run file may claim any number of them
constexpr double kMostBelievable = 1e15;

constexpr bool in_order() {
  for (size_t i = 0; i < kRelations.size(); ++i) {
    if (static_cast<size_t>(kRelations[i].kind) != i) return false;
  }
  return kRelations.size() == static_cast<size_t>(Relation::unknown) + 1;
}
static_assert(in_order());

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<double> amount(std::string_view text) {
  auto value = number<double>(text);
  if (!value || !(*value >= 0 && *value <= kMostBelievable)) return {};
  return value;
}

std::string cpus_key(const RelationRow& row) {
  return fmt::format("{}_cpus", row.id);
}

void take(OtherUser& user, const Fact& fact) {
  if (fact.key == "name") user.name = fact.value;
  if (fact.key == "service") user.service = fact.value;
  if (fact.key == "pid") user.pid = number<pid_t>(fact.value).value_or(0);
  if (fact.key == "processes") user.processes = number<uint32_t>(fact.value).value_or(1);
  if (fact.key == "cpus") user.cpus = amount(fact.value).value_or(0);
  if (fact.key == "disk_bytes_per_s") user.disk_bytes_per_s = amount(fact.value);
  if (fact.key == "relation") {
    user.relation = relation_of(fact.value).value_or(Relation::unknown);
  }
}

}  // namespace

std::string_view relation_id(Relation relation) {
  return kRelations[static_cast<size_t>(relation) % kRelationCount].id;
}

std::string_view relation_name(Relation relation) {
  return kRelations[static_cast<size_t>(relation) % kRelationCount].name;
}

std::optional<Relation> relation_of(std::string_view id) {
  for (const RelationRow& row : kRelations) {
    if (row.id == id) return row.kind;
  }
  return {};
}

void keep_largest(std::vector<OtherUser>& users, size_t count) {
  auto disk = [](const OtherUser& user) { return user.disk_bytes_per_s.value_or(0); };
  auto least_of_largest = [&](auto amount) {
    std::ranges::sort(users, std::greater(), amount);
    return users.size() > count ? std::invoke(amount, users[count - 1]) : 0;
  };
  double least_disk = least_of_largest(disk), least_cpus = least_of_largest(&OtherUser::cpus);
  std::erase_if(users, [&](const OtherUser& user) {
    return user.cpus < least_cpus && (disk(user) <= 0 || disk(user) < least_disk);
  });
}

// A fact replaces the one of the same scope and key, so every key is written, also empty ones.
std::vector<Fact> to_facts(const OtherUsers& others) {
  std::vector<Fact> facts;
  for (const RelationRow& row : kRelations) {
    if (auto cpus = others.cpus_of(row.kind)) {
      facts.push_back({std::string(kAll), cpus_key(row), fmt::format("{:.4f}", *cpus)});
    }
  }
  for (size_t i = 0; i < others.largest.size(); ++i) {
    const OtherUser& user = others.largest[i];
    std::string scope = fmt::format("{}{}", kOne, i + 1);
    facts.push_back({scope, "name", user.name});
    facts.push_back({scope, "pid", std::to_string(user.pid)});
    facts.push_back({scope, "processes", std::to_string(user.processes)});
    facts.push_back({scope, "service", user.service});
    facts.push_back({scope, "cpus", fmt::format("{:.4f}", user.cpus)});
    facts.push_back(
        {scope, "disk_bytes_per_s",
         user.disk_bytes_per_s ? fmt::format("{:.0f}", *user.disk_bytes_per_s) : "unknown"});
    facts.push_back({scope, "relation", std::string(relation_id(user.relation))});
  }
  return facts;
}

OtherUsers others_in(const std::vector<Fact>& facts) {
  OtherUsers others;
  std::map<uint32_t, OtherUser> users;  // by number
  for (const Fact& fact : facts) {
    if (fact.scope == kAll) {
      for (const RelationRow& row : kRelations) {
        auto cpus = fact.key == cpus_key(row) ? amount(fact.value) : std::nullopt;
        if (!cpus) continue;
        if (!others.cpus) others.cpus.emplace();
        (*others.cpus)[static_cast<size_t>(row.kind)] = *cpus;
      }
    } else if (fact.scope.starts_with(kOne)) {
      auto place = number<uint32_t>(std::string_view(fact.scope).substr(kOne.size()));
      if (place && (users.size() < kMostRead || users.contains(*place))) take(users[*place], fact);
    }
  }
  for (auto& [place, user] : users) {
    if (user.pid > 0) others.largest.push_back(std::move(user));
  }
  return others;
}

}  // namespace assay::model
