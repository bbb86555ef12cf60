#include "report/json/json_parts.h"

namespace assay::report {

Json json_idle_decisions(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::IdleDecision& one : report.idle_decisions) {
    const analysis::IdleReasonRow& reason = analysis::describe(one.reason);
    Json json{{"pool", one.pool},
              {"pid", one.pid},
              {"role", one.role},
              {"site", one.site},
              {"kind", analysis::block_kind_id(one.kind)},
              {"idle", reason.idle},
              {"reason", reason.id},
              {"because", reason.because}};
    if (!one.rule.empty()) json["rule"] = one.rule;
    json["time_ns"] = one.time_ns;
    json["share"] = one.share;
    json["waits"] = one.waits;
    json["candidate_waits"] = one.candidates;
    json["ended_by_target"] = one.ended_by_target;
    json["ended_by_pool"] = one.ended_by_pool;
    json["branch_work"] = one.branch_work;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace assay::report
