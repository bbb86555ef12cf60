// The heap as JSON.
#include <cmath>

#include "report/json/json_parts.h"

namespace assay::report {
namespace {

Json amount(const analysis::HeapAmount& a) {
  return {{"bytes", std::llround(a.bytes)},
          {"bytes_error", std::llround(a.bytes_error)},
          {"objects", std::llround(a.objects)},
          {"objects_error", std::llround(a.objects_error)},
          {"samples", a.samples}};
}

Json site_json(const analysis::HeapSite& site) {
  Json json{{"function", site.function}, {"module", site.module}};
  if (!site.file.empty()) json["file"] = site.file;
  if (site.line > 0) json["line"] = site.line;
  json["live"] = amount(site.live);
  json["allocated"] = amount(site.allocated);
  json["old"] = amount(site.old);
  json["freed_share"] = site.freed_share;
  json["median_lifetime_ns"] = site.median_lifetime_ns;
  json["p90_lifetime_ns"] = site.p90_lifetime_ns;
  json["growth_bytes_per_s"] = site.growth_bytes_per_s;
  json["live_at_marks"] = Json::array();
  for (double bytes : site.growth) json["live_at_marks"].push_back(std::llround(bytes));
  json["leaks"] = site.leaks;
  json["frames"] = json_frames(site.frames);
  return json;
}

}  // namespace

Json json_heap(const analysis::Report& report) {
  const analysis::HeapSummary& heap = report.heap;
  if (!heap.present) return nullptr;
  Json json{{"timed", heap.timed},
            {"live_known", heap.live_known},
            {"freed_known", heap.freed_known},
            {"window_ns", heap.window_ns},
            {"rate_bytes", heap.rate_bytes},
            {"live", amount(heap.live)},
            {"allocated", amount(heap.allocated)},
            {"peak_bytes", std::llround(heap.peak_bytes)},
            {"peak_ns", heap.peak_ns},
            {"young_ns", heap.young_ns},
            {"marks_ns", heap.marks},
            {"sites_in_all", heap.sites_in_all}};
  json["timeline"] = Json::array();
  for (const analysis::HeapPoint& point : heap.timeline) {
    json["timeline"].push_back({{"time_ns", point.time},
                                {"live_bytes", std::llround(point.live_bytes)},
                                {"live_objects", std::llround(point.live_objects)}});
  }
  json["sites"] = Json::array();
  for (const analysis::HeapSite& site : heap.sites) json["sites"].push_back(site_json(site));
  json["threads"] = Json::array();
  for (const analysis::HeapThread& thread : heap.threads) {
    json["threads"].push_back({{"name", thread.name},
                               {"tid", thread.tid},
                               {"pool", thread.pool},
                               {"allocated", amount(thread.allocated)}});
  }
  return json;
}

}  // namespace assay::report
