#include <nlohmann/json.hpp>

#include "load/result/result_text.h"
#include "load/secrets.h"

namespace assay::load {
namespace {

using Json = nlohmann::ordered_json;

Json latency_json(const Histogram& latency) {
  return {{"count", latency.count()},
          {"mean_ns", static_cast<int64_t>(latency.mean_ns())},
          {"min_ns", latency.min_ns()},
          {"p50_ns", latency.quantile_ns(0.5)},
          {"p90_ns", latency.quantile_ns(0.9)},
          {"p99_ns", latency.quantile_ns(0.99)},
          {"p999_ns", latency.quantile_ns(0.999)},
          {"max_ns", latency.max_ns()}};
}

Json errors_json(const Tally& total) {
  Json kinds = Json::object();
  Json details = Json::array();
  for (const auto& [outcome, count] : total.errors) {
    std::string kind(kind_name(outcome.kind));
    kinds[kind] = kinds.value(kind, uint64_t{0}) + count;
    details.push_back(
        {{"kind", kind}, {"code", outcome.code}, {"text", describe(outcome)}, {"count", count}});
  }
  return {{"by_kind", kinds}, {"details", details}, {"first_fault", total.first_protocol_fault}};
}

Json series_json(const LoadResult& result) {
  Json rows = Json::array();
  for (const SecondRow& row : result.series) {
    rows.push_back({{"end_ns", row.end - result.begin},
                    {"seconds", row.seconds},
                    {"ok", row.ok},
                    {"errors", row.failed},
                    {"p50_ns", row.p50_ns},
                    {"p90_ns", row.p90_ns},
                    {"p99_ns", row.p99_ns},
                    {"max_ns", row.max_ns},
                    {"generator_cpu_ns", row.cpu_ns}});
  }
  return rows;
}

}  // namespace

std::string result_json(const LoadResult& result) {
  constexpr const char* kProtocols[] = {"http/1.1", "http/2", "grpc"};
  std::string saturated = result.saturated();
  Json json{{"schema", "assay-load-1"},
            {"url", hide_secrets(result.workload.url.text())},
            {"address", result.address},
            {"protocol", kProtocols[static_cast<int>(result.workload.protocol)]},
            {"method", result.workload.method},
            {"mode", result.rate > 0 ? "open" : "closed"},
            {"connections", result.connections},
            {"streams", result.streams},
            {"threads", result.threads},
            {"rate", result.rate},
            {"seconds", result.seconds()},
            {"requests", result.total.finished()},
            {"ok", result.total.ok},
            {"errors", result.total.failed},
            {"throughput_per_s", result.throughput()},
            {"messages", result.total.messages},
            {"bytes_in", result.total.bytes_in},
            {"connects", result.total.connects},
            {"retried", result.total.retried},
            {"unanswered", result.unanswered},
            {"unanswered_oldest_ns", result.unanswered_oldest_ns},
            {"unsent", result.unsent},
            {"latency", latency_json(result.total.latency)},
            {"error_kinds", errors_json(result.total)},
            {"generator",
             {{"cpu_share", result.cpu_share()},
              {"cpu_wait_share", result.wait_share()},
              {"lag_p99_ns", result.total.lag.quantile_ns(0.99)},
              {"saturated", !saturated.empty()},
              {"why", saturated}}},
            {"series", series_json(result)}};
  // Text from the peer (faults) may be invalid UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay::load
