// Prints the descriptor tables of analysis as JSON, for scripts/write-tables.
//
// In: nothing. Out: one JSON object on stdout, a list of rows for each table. Never fails.
#include <iostream>

#include <nlohmann/json.hpp>

#include "analysis/idle/idle_reason.h"
#include "analysis/rules/rule_set.h"
#include "analysis/rules/share_of.h"
#include "model/other_user.h"

namespace assay::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json verdicts() {
  Json list = Json::array();
  for (const VerdictKindRow& row : verdict_kinds()) {
    list.push_back({{"id", row.id},
                    {"stem", row.stem},
                    {"limit", limit_id(row.limit)},
                    {"rests_on_samples", row.rests_on_samples},
                    {"next_step", row.next_step}});
  }
  return list;
}

Json waits() {
  Json list = Json::array();
  for (const BlockKindRow& row : block_kinds()) {
    list.push_back({{"id", row.id},
                    {"name", row.name},
                    {"vital", row.vital},
                    {"verdict", row.verdict ? verdict_kind_id(*row.verdict) : ""},
                    {"can_be_idle", row.can_be_idle},
                    {"page_order", row.page_order},
                    {"light", row.light},
                    {"dark", row.dark},
                    {"waits_for", row.waits_for},
                    {"told_from", row.told_from}});
  }
  return list;
}

Json vitals() {
  Json list = Json::array();
  for (const VitalRow& row : vital_rows()) {
    list.push_back({{"id", row.id}, {"unit", vital_unit_id(row.unit)}, {"sentence", row.sentence}});
  }
  return list;
}

Json relations() {
  Json list = Json::array();
  for (const model::RelationRow& row : model::kRelations) {
    list.push_back({{"id", row.id}, {"name", row.name}, {"meaning", row.meaning}});
  }
  return list;
}

Json idle_reasons_json() {
  Json list = Json::array();
  for (const IdleReasonRow& row : idle_reasons()) {
    list.push_back({{"id", row.id}, {"idle", row.idle}, {"because", row.because}});
  }
  return list;
}

template <class Rows>
Json ids(const Rows& rows) {
  Json list = Json::array();
  for (const auto& row : rows) list.push_back(row.id);
  return list;
}

}  // namespace
}  // namespace assay::analysis

int main() {
  using namespace assay::analysis;
  Json all{{"verdict_kinds", verdicts()},
           {"wait_kinds", waits()},
           {"vitals", vitals()},
           {"idle_reasons", idle_reasons_json()},
           {"causes", ids(kCauses)},
           {"shares_of", ids(kSharesOf)},
           {"lock_shapes", ids(kLockShapes)},
           {"relations", relations()},
           {"category_roles", ids(kCategoryRoleRows)},
           {"suspects", ids(kUsualSuspects)}};
  std::cout << all.dump(1) << "\n";
}
