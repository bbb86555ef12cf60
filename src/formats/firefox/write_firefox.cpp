#include "formats/firefox/write_firefox.h"

#include <algorithm>
#include <map>

#include "formats/firefox/thread_tables.h"
#include "formats/export/text.h"

namespace assay::formats {
namespace {

constexpr std::string_view kCategories =
    R"([{"name":"Other","color":"grey","subcategories":["Other"]},)"
    R"({"name":"Application","color":"yellow","subcategories":["Other"]},)"
    R"({"name":"User library","color":"lightblue","subcategories":["Other"]},)"
    R"({"name":"Kernel","color":"orange","subcategories":["Other"]},)"
    R"({"name":"JIT","color":"green","subcategories":["Other"]},)"
    R"({"name":"Waiting","color":"blue","subcategories":["Other"]}])";

constexpr std::string_view kMarkerSchema =
    R"([{"name":"Wait","tooltipLabel":"Wait: {marker.data.kind}",)"
    R"("tableLabel":"{marker.data.kind} {marker.data.syscall}","chartLabel":"{marker.data.kind}",)"
    R"("display":["marker-chart","marker-table","timeline-overview"],"data":[)"
    R"({"key":"kind","label":"Waited for","format":"string","searchable":true},)"
    R"({"key":"syscall","label":"System call","format":"string","searchable":true},)"
    R"({"key":"runqueue","label":"Then waited for a CPU","format":"duration"}]}])";

// The form that symbol servers ask for: the build id's first 16 bytes as a GUID, then "0".
std::string breakpad_id(const std::string& build_id) {
  bool hex = std::all_of(build_id.begin(), build_id.end(),
                         [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (build_id.empty() || !hex) return "";
  std::string bytes = build_id.substr(0, 32);
  bytes.resize(32, '0');
  std::string id;
  for (int pair : {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}) {
    id += bytes.substr(static_cast<size_t>(pair) * 2, 2);
  }
  for (char& c : id) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return id + "0";
}

void write_meta(const SelectedRun& run, Output& output) {
  const model::RunInfo& info = run.contents().info;
  double interval =
      info.sample_period_ns > 0 ? static_cast<double>(info.sample_period_ns) / 1e6 : 1;
  output.write(fmt::format(
      "{{\"meta\":{{\"interval\":{},\"startTime\":{},\"processType\":0,\"product\":{},"
      "\"stackwalk\":1,\"version\":24,\"preprocessedProfileVersion\":{},\"symbolicated\":true,"
      "\"importedFrom\":{},\"platform\":\"Linux\",\"categories\":{},\"markerSchema\":{},"
      "\"sampleUnits\":{{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"}}}},\n",
      interval, static_cast<double>(info.utc_begin_ns) / 1e6, json_text(info.target),
      kFirefoxVersion, json_text("assay " + info.assay_version), kCategories, kMarkerSchema));
}

// The libs array; gives by module its index in it, −1 for what is no file.
std::vector<int> write_libs(const run::Contents& contents, Output& output) {
  std::vector<int> index(contents.modules.size(), -1);
  int count = 0;
  output.write("\"libs\":[");
  for (const model::Module& module : contents.modules) {
    if (module.kind != model::ModuleKind::elf) continue;
    size_t slash = module.path.rfind('/');
    std::string name = module.path.substr(slash == module.path.npos ? 0 : slash + 1);
    output.write(fmt::format(
        "{}{{\"arch\":\"x86_64\",\"name\":{},\"path\":{},\"debugName\":{},\"debugPath\":{},"
        "\"breakpadId\":\"{}\",\"codeId\":{}}}",
        count > 0 ? ",\n" : "", json_text(name), json_text(module.path), json_text(name),
        json_text(module.path), breakpad_id(module.build_id),
        module.build_id.empty() ? "null" : json_text(module.build_id)));
    index[module.id.value] = count++;
  }
  output.write("],\n");
  return index;
}

}  // namespace

Result<void> write_firefox(SelectedRun& run, Output& output) {
  std::map<model::ThreadId, ThreadTables> threads;
  auto tables = [&](model::ThreadId id) -> ThreadTables& {
    return threads.try_emplace(id, run).first->second;
  };
  auto done = run.for_each_sample([&](const model::Sample& s) { tables(s.thread).add(s); });
  if (!done) return done;
  done = run.for_each_wait([&](const SelectedWait& w) { tables(w.wait.thread).add(w); });
  if (!done) return done;
  write_meta(run, output);
  std::vector<int> libs = write_libs(run.contents(), output);
  output.write("\"pages\":[],\"counters\":[],\"threads\":[");
  bool first = true;
  for (auto& [id, table] : threads) {
    if (table.empty()) continue;
    output.write(first ? "\n" : ",\n");
    first = false;
    const model::Thread& thread = run.thread(id);
    bool known = thread.process.value < run.contents().processes.size();
    table.write(thread, known ? run.process_label(thread.process) : "unknown process",
                run.process_of(id).pid, libs, output);
  }
  output.write("]}\n");
  return {};
}

}  // namespace assay::formats
