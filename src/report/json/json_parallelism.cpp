#include "report/json/json_parts.h"

namespace assay::report {

Json json_parallelism(const analysis::Report& report) {
  const analysis::Parallelism& found = report.parallelism;
  if (!found.known()) return nullptr;
  Json json{{"threads", found.threads},         {"running", found.running},
            {"active", found.active},           {"at_work", found.at_work},
            {"mean_active", found.mean_active}, {"busiest_thread", found.busiest_thread}};
  const auto& in_flight = report.vitals.concurrency;
  json["requests_in_flight"] = in_flight ? Json(*in_flight) : Json(nullptr);
  return json;
}

}  // namespace assay::report
