// Verdict, findings, locks and categories as JSON.
#include <fmt/format.h>

#include "report/json/json_parts.h"

namespace assay::report {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json claim(const analysis::Claim& c) {
  return {{"kind", analysis::verdict_kind_id(c.kind)},
          {"sentence", c.sentence},
          {"confidence", c.confidence},
          {"numbers", c.numbers}};
}

Json evidence(const std::vector<analysis::Evidence>& list) {
  Json all = Json::array();
  for (const analysis::Evidence& one : list) {
    Json json{{"text", one.text}, {"frames", json_frames(one.frames)}};
    if (!one.source.empty()) {
      json["source"] = one.source;
      json["source_line"] = one.source_line;
    }
    all.push_back(std::move(json));
  }
  return all;
}

Json where(const analysis::Where& w) {
  Json json{{"symbol", w.symbol}};
  if (!w.file.empty()) json["file"] = w.file;
  if (w.line > 0) json["line"] = w.line;
  return json;
}

}  // namespace

Json json_verdict(const analysis::Report& report) {
  const analysis::Verdict& v = report.verdict;
  Json json = claim(v);
  json["of_whole_run"] = v.of_whole_run;
  json["secondary"] = Json::array();
  for (const analysis::Claim& second : v.secondary) json["secondary"].push_back(claim(second));
  json["withheld"] = Json::array();
  for (size_t i = 0; i < v.withheld.size(); ++i) {
    json["withheld"].push_back(
        {{"why", v.withheld[i]}, {"remedy", i < v.remedies.size() ? v.remedies[i] : ""}});
  }
  json["next_step"] = v.next_step;
  json["next_command"] = v.next_command;
  return json;
}

Json json_load(const analysis::Report& report) {
  const analysis::Workload& w = report.workload;
  if (!w.present) return nullptr;
  return {{"kind", w.kind},
          {"what", w.what},
          {"closed_loop", w.closed_loop},
          {"connections", or_null(w.connections)},
          {"streams", or_null(w.streams)},
          {"rate", or_null(w.rate)},
          {"requests", w.requests},
          {"errors", w.errors},
          {"throughput_per_s", w.throughput_per_s},
          {"p50_ns", or_null(w.p50_ns)},
          {"p90_ns", or_null(w.p90_ns)},
          {"p99_ns", or_null(w.p99_ns)},
          {"max_ns", or_null(w.max_ns)},
          {"generator_saturated", w.generator_saturated},
          {"generator_cpus", or_null(w.generator_cpus)},
          {"ended", w.ended}};
}

Json json_vitals(const analysis::Report& report) {
  Json json = Json::object();
  for (const analysis::VitalRow& row : analysis::vital_rows()) {
    if (const auto& value = row.of(report.vitals)) json[std::string(row.id)] = *value;
  }
  return json;
}

Json json_categories(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::CategoryShare& c : report.categories) {
    list.push_back({{"breakdown", c.category.breakdown},
                    {"id", c.category.id},
                    {"name", c.category.name},
                    {"time_ns", c.time_ns},
                    {"samples", c.samples},
                    {"share", c.share.share},
                    {"ci", json_interval(c.share)},
                    {"inclusive_share", c.inclusive_share},
                    {"top_function", c.top_function}});
  }
  return list;
}

Json json_locks(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::LockSummary& lock : report.locks) {
    Json waiters = Json::array(), holders = Json::array();
    for (const analysis::LockWaiter& w : lock.waiters) {
      Json json{{"function", w.function}, {"total_ns", w.total_ns}, {"waits", w.waits}};
      if (!w.file.empty()) json["file"] = w.file;
      if (w.line > 0) json["line"] = w.line;
      json["frames"] = json_frames(w.frames);
      waiters.push_back(std::move(json));
    }
    for (const analysis::LockHolder& h : lock.holders) {
      holders.push_back({{"thread", h.thread}, {"function", h.function}, {"waits", h.waits}});
    }
    list.push_back(
        {{"name", lock.name},
         {"pid", lock.pid},
         {"address", lock.address ? Json(fmt::format("{:#x}", lock.address)) : Json(nullptr)},
         {"waits", lock.waits},
         {"total_ns", lock.total_ns},
         {"mean_ns", lock.mean_ns},
         {"p99_ns", lock.p99_ns},
         {"max_ns", lock.max_ns},
         {"waited_share", lock.waited_share},
         {"busy_share", lock.busy_share},
         {"mean_waiters", lock.mean_waiters},
         {"most_waiters", lock.most_waiters},
         {"threads", lock.threads},
         {"shape", analysis::lock_shape_id(lock.shape)},
         {"waiters", waiters},
         {"holders", holders}});
  }
  return list;
}

Json json_findings(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::Finding& f : report.findings) {
    const auto& predicted = f.gain.predicted;
    list.push_back({{"id", f.id},
                    {"title", f.title},
                    {"cause", analysis::cause_id(f.cause)},
                    {"share", f.share.share},
                    {"ci", json_interval(f.share)},
                    {"share_of", analysis::share_of_id(f.of)},
                    {"because", f.because},
                    {"recommendation", f.recommendation},
                    {"where", where(f.where)},
                    {"evidence", evidence(f.evidence)},
                    {"gain_upper_bound", or_null(f.gain.upper_bound)},
                    {"gain_predicted", predicted ? Json(predicted->share) : Json()},
                    {"gain_interval", predicted ? json_interval(*predicted) : Json()},
                    {"gain", f.gain.text},
                    {"withholds", f.withholds}});
  }
  return list;
}

Json json_resources(const analysis::Report& report) {
  const analysis::Demands& d = report.demands;
  if (!d.known()) return {};
  Json list = Json::array();
  for (const analysis::Resource& r : d.resources) {
    list.push_back({{"kind", describe(r.kind).id},
                    {"name", r.name},
                    {"servers", r.servers > 0 ? Json(r.servers) : Json()},
                    {"demand_s", r.demand_s},
                    {"busy_share", r.busy_share},
                    {"waiting", r.waiting},
                    {"limits", r.limits}});
  }
  return {{"unit", analysis::work_unit_id(d.unit)},
          {"units_per_s", d.units_per_s},
          {"in_flight", d.in_flight},
          {"in_flight_known", d.in_flight_known},
          {"list", list}};
}

Json json_not_bottlenecks(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::NotBottleneck& n : report.not_bottlenecks) {
    list.push_back({{"what", n.what}, {"text", n.text}, {"share", n.share}});
  }
  return list;
}

Json json_suspects(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::SuspectAnswer& s : report.suspects) {
    list.push_back({{"pattern", s.pattern},
                    {"answer", s.answer},
                    {"text", s.text},
                    {"cpu_share", s.cpu_share},
                    {"blocked_share", s.blocked_share},
                    {"evidence", evidence(s.evidence)}});
  }
  return list;
}

}  // namespace assay::report
