#include "report/json/json.h"

#include <algorithm>
#include <optional>

#include "report/json/json_parts.h"
#include "report/text/words.h"

namespace assay::report {
namespace {

std::string_view code_kind_id(analysis::CodeKind kind) {
  switch (kind) {
    case analysis::CodeKind::user:
      return "user";
    case analysis::CodeKind::kernel:
      return "kernel";
    case analysis::CodeKind::marker:
      return "marker";
  }
  return "user";
}

Json blocked(const analysis::TimeSplit& time) {
  Json kinds = Json::object();
  for (int k = 0; k < analysis::kBlockKindCount; ++k) {
    auto kind = static_cast<analysis::BlockKind>(k);
    if (time.of(kind) != 0) kinds[std::string(analysis::block_kind_id(kind))] = time.of(kind);
  }
  return kinds;
}

void put_split(Json& json, const analysis::TimeSplit& time) {
  json["wall_ns"] = time.wall_ns;
  json["user_ns"] = time.user_ns;
  json["kernel_ns"] = time.kernel_ns;
  json["runqueue_ns"] = time.runqueue_ns;
  json["blocked_ns"] = blocked(time);
  json["idle_ns"] = time.idle_ns;
}

Json split(const analysis::TimeSplit& time) {
  Json json;
  put_split(json, time);
  return json;
}

Json stacks(const analysis::StackShares& shares) {
  return {{"time_ns", shares.time_ns},
          {"complete_share", shares.complete},
          {"frame_pointer_share", shares.by_frame_pointers},
          {"truncated_share", shares.truncated},
          {"none_share", shares.none},
          {"unresolved_share", shares.unresolved}};
}

Json notes(const std::vector<model::QualityNote>& list) {
  Json json = Json::array();
  for (const model::QualityNote& note : list) {
    json.push_back({{"topic", note.topic}, {"text", note.text}, {"remedy", note.remedy}});
  }
  return json;
}

Json accounting(const analysis::Accounting& a) {
  return {{"threads_checked", a.threads_checked},
          {"checked_ns", a.checked_ns},
          {"error_share", a.error_share},
          {"worst_share", a.worst_share},
          {"worst_tid", a.worst_tid},
          {"resolution_ns", a.resolution_ns},
          {"queued_ns", a.queued_ns},
          {"kernel_queued_ns", a.kernel_queued_ns},
          {"overlapping_waits", a.overlapping_waits},
          {"overlapping_ns", a.overlapping_ns},
          {"threads_unseen", a.threads_unseen}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json quality(const analysis::Quality& q) {
  Json lost = Json::object();
  for (int k = 0; k < model::kLossKindCount; ++k) {
    std::string name = model::loss_kind_name(static_cast<model::LossKind>(k));
    std::replace(name.begin(), name.end(), ' ', '_');
    lost[name] = q.lost[static_cast<size_t>(k)];
  }
  Json modules = Json::array();
  for (const analysis::UnresolvedModule& module : q.unresolved_modules) {
    modules.push_back({{"module", module.module}, {"share", module.share}});
  }
  return {{"samples", q.samples},
          {"waits", q.waits},
          {"hz", q.hz},
          {"hz_asked", q.hz_asked},
          {"sampled_share", q.sampled_share},
          {"lost", q.lost_records},
          {"lost_share", q.lost_share},
          {"lost_by_kind", lost},
          {"complete_share", q.on_cpu.complete},
          {"unresolved_share", q.on_cpu.unresolved},
          {"unresolved_modules", modules},
          {"on_cpu_stacks", stacks(q.on_cpu)},
          {"off_cpu_stacks", stacks(q.off_cpu)},
          {"waits_without_stack", q.waits_without_stack},
          {"orphans", q.orphans},
          {"accounting", accounting(q.accounting)},
          {"own_cost",
           {{"cpu_ns", or_null(q.own_cost.cpu_ns)},
            {"peak_rss_bytes", or_null(q.own_cost.peak_rss_bytes)}}},
          {"finished", q.finished},
          {"end_reason", q.end_reason},
          {"limits", notes(all_limits(q))}};
}

Json workload(const analysis::Report& report) {
  const model::RunInfo& info = report.info;
  return {{"target", info.target},
          {"command_line", info.command_line},
          {"begin_utc", utc_time(info.utc_begin_ns)},
          {"utc_begin_ns", info.utc_begin_ns},
          {"window_begin_ns", info.window_begin_ns},
          {"window_ns", report.window_ns},
          {"backend", info.backend},
          {"oncpu_event", info.oncpu_event},
          {"sample_period_ns", info.sample_period_ns},
          {"cpus", report.cpus},
          {"selection", report.selection},
          {"load", json_load(report)}};
}

Json facts(const analysis::Report& report) {
  Json scopes = Json::object();
  for (const model::Fact& fact : report.facts) scopes[fact.scope][fact.key] = fact.value;
  return scopes;
}

Json processes(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::ProcessTime& row : report.processes) {
    const model::Process& p = row.process;
    Json json{{"pid", p.pid},           {"parent_pid", p.parent_pid},
              {"role", p.role},         {"comm", p.comm},
              {"exe", p.exe},           {"cmdline", p.cmdline},
              {"build_id", p.build_id}, {"cgroup", p.cgroup},
              {"threads", row.threads}};
    json["thread_time"] = split(row.time);
    json["pools"] = Json::array();
    for (const analysis::PoolTime& pool : row.pools) {
      json["pools"].push_back(
          {{"pool", pool.pool}, {"threads", pool.threads}, {"thread_time", split(pool.time)}});
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json threads(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::ThreadTime& row : report.threads) {
    Json json{{"pid", row.pid},
              {"tid", row.tid},
              {"name", row.name},
              {"pool", row.pool},
              {"role", row.role}};
    put_split(json, row.time);
    list.push_back(std::move(json));
  }
  return list;
}

Json functions(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::HotFunction& f : report.on_cpu.functions) {
    Json json{{"function", f.name}, {"module", f.module}, {"kind", code_kind_id(f.kind)}};
    if (!f.file.empty()) json["file"] = f.file;
    if (f.line > 0) json["line"] = f.line;
    if (!f.named) json["named"] = false;
    json["self_ns"] = f.self_ns;
    json["self_samples"] = f.self_samples;
    json["self_share"] = f.self.share;
    json["self_ci"] = json_interval(f.self);
    json["total_ns"] = f.total_ns;
    json["total_samples"] = f.total_samples;
    json["total_share"] = f.total.share;
    json["total_ci"] = json_interval(f.total);
    list.push_back(std::move(json));
  }
  return list;
}

Json hot_paths(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::HotPath& path : report.on_cpu.paths) {
    list.push_back({{"time_ns", path.time_ns},
                    {"samples", path.samples},
                    {"share", path.share.share},
                    {"ci", json_interval(path.share)},
                    {"frames", json_frames(path.frames)}});
  }
  return list;
}

Json waits(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::WaitSummary& wait : report.off_cpu.paths) {
    Json pools = Json::array();
    for (const analysis::PoolShare& pool : wait.pools) {
      pools.push_back({{"pool", pool.pool}, {"time_ns", pool.time_ns}});
    }
    list.push_back({{"kind", analysis::block_kind_id(wait.kind)},
                    {"idle", wait.idle},
                    {"total_ns", wait.total_ns},
                    {"count", wait.count},
                    {"mean_ns", wait.mean_ns},
                    {"p99_ns", wait.p99_ns},
                    {"max_ns", wait.max_ns},
                    {"cut", wait.cut},
                    {"pools", pools},
                    {"frames", json_frames(wait.frames)}});
  }
  return list;
}

// An imported profile that counts something else says nothing of the time of threads.
analysis::Report without_thread_time(analysis::Report report) {
  report.thread_time = {};
  report.vitals = {};
  for (analysis::ThreadTime& thread : report.threads) thread.time = {};
  for (analysis::ProcessTime& process : report.processes) {
    process.time = {};
    for (analysis::PoolTime& pool : process.pools) pool.time = {};
  }
  return report;
}

}  // namespace

Json json_interval(const analysis::Estimate& e) {
  return Json::array({e.low, e.high});
}

Json json_frames(const std::vector<analysis::FrameText>& leaf_first) {
  Json list = Json::array();
  for (const analysis::FrameText& frame : leaf_first) {
    Json json{
        {"function", frame.function}, {"module", frame.module}, {"kind", code_kind_id(frame.kind)}};
    if (!frame.file.empty()) json["file"] = frame.file;
    if (frame.line > 0) json["line"] = frame.line;
    if (frame.inlined) json["inlined"] = true;
    if (!frame.named) json["named"] = false;
    list.push_back(std::move(json));
  }
  return list;
}

namespace {

Json other_users(const analysis::Report& report) {
  Json list = Json::array();
  for (const model::OtherUser& user : report.others.largest) {
    Json json{{"name", user.name},
              {"pid", user.pid},
              {"processes", user.processes},
              {"service", user.service},
              {"relation", model::relation_id(user.relation)},
              {"cpus", user.cpus}};
    json["disk_bytes_per_s"] = or_null(user.disk_bytes_per_s);
    list.push_back(std::move(json));
  }
  return list;
}

Json accelerators(const analysis::Report& report) {
  Json list = Json::array();
  for (const analysis::AcceleratorUse& one : report.accelerators) {
    Json json{{"device", one.about.device},
              {"name", one.about.name},
              {"used_by_target", one.about.used_by_target},
              {"figures", analysis::figures_of(one)}};
    json["busy_share"] = or_null(one.busy);
    json["memory_bytes"] = or_null(one.memory_bytes);
    json["memory_total_bytes"] = or_null(one.about.memory_bytes);
    json["power_w"] = or_null(one.power_w);
    json["power_limit_w"] = or_null(one.about.power_limit_w);
    json["throttled_share"] = or_null(one.throttled);
    json["temperature_c"] = or_null(one.temperature_c);
    list.push_back(std::move(json));
  }
  return list;
}

Json json_of(const analysis::Report& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["assay_version"] = report.info.assay_version;
  json["run"] = report.run_path;
  json["workload"] = workload(report);
  json["verdict"] = json_verdict(report);
  json["quality"] = quality(report.quality);
  json["vitals"] = json_vitals(report);
  json["facts"] = facts(report);
  json["thread_time"] = split(report.thread_time);
  json["processes"] = processes(report);
  json["threads"] = threads(report);
  json["parallelism"] = json_parallelism(report);
  json["other_users"] = other_users(report);
  json["accelerators"] = accelerators(report);
  json["resources"] = json_resources(report);
  json["findings"] = json_findings(report);
  json["not_bottlenecks"] = json_not_bottlenecks(report);
  json["suspects"] = json_suspects(report);
  json["locks"] = json_locks(report);
  json["categories"] = json_categories(report);
  json["hot_paths"] = hot_paths(report);
  json["functions"] = functions(report);
  json["waits"] = waits(report);
  json["idle_decisions"] = json_idle_decisions(report);
  json["heap"] = json_heap(report);
  json["rule_errors"] = report.rule_errors;
  return json;
}

}  // namespace

std::string render_json(const analysis::Report& report) {
  bool timed = !is_of_counts(report.run_kind);
  Json json = timed ? json_of(report) : json_of(without_thread_time(report));
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay::report
