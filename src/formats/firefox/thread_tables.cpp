#include "formats/firefox/thread_tables.h"

#include <algorithm>

#include "analysis/time/wait_kind.h"
#include "formats/export/text.h"
#include "formats/firefox/write_firefox.h"
#include "formats/tree/flame_tree.h"
#include "model/code/code_origin.h"
#include "model/syscalls.h"
#include "run/names.h"

namespace assay::formats {
namespace {

// "name":[a,b,c]
template <class Rows, class Cell>
std::string column(std::string_view name, const Rows& rows, const Cell& cell) {
  std::string text = fmt::format("\"{}\":[", name);
  bool first = true;
  for (const auto& row : rows) {
    if (!first) text += ',';
    first = false;
    fmt::format_to(std::back_inserter(text), "{}", cell(row));
  }
  return text + "]";
}

std::string or_null(int64_t value, bool present) {
  return present ? std::to_string(value) : "null";
}

FirefoxCategory category_of(const model::Module& module) {
  switch (module.kind) {
    case model::ModuleKind::kernel:
      return FirefoxCategory::kernel;
    case model::ModuleKind::anonymous:
      return FirefoxCategory::jit;
    case model::ModuleKind::marker:
      return FirefoxCategory::other;
    case model::ModuleKind::vdso:
      return FirefoxCategory::library;
    case model::ModuleKind::elf:
      break;
  }
  return model::code_origin(module.path) == model::CodeOrigin::library
             ? FirefoxCategory::library
             : FirefoxCategory::application;
}

}  // namespace

int ThreadTables::string(std::string_view text) {
  std::string clean = clean_text(text);
  auto [it, added] = string_ids_.try_emplace(clean, static_cast<int>(strings_.size()));
  if (added) strings_.push_back(clean);
  return it->second;
}

int ThreadTables::resource(uint32_t module) {
  auto [it, added] = resource_ids_.try_emplace(module, static_cast<int>(resources_.size()));
  if (added) {
    std::string_view path = run_.contents().modules[module].path;
    size_t slash = path.rfind('/');
    resources_.emplace_back(module, string(slash == path.npos ? path : path.substr(slash + 1)));
  }
  return it->second;
}

int ThreadTables::func(uint32_t module, std::string_view name, std::string_view file,
                       uint32_t line) {
  FuncRow row{string(name), resource(module), file.empty() ? -1 : string(file), line};
  std::string key = fmt::format("{} {} {}", row.name, row.resource, row.file);
  auto [it, added] = func_ids_.try_emplace(std::move(key), static_cast<int>(funcs_.size()));
  if (added) funcs_.push_back(row);
  return it->second;
}

int ThreadTables::push(int prefix, const FrameRow& row) {
  std::string key = fmt::format("{} {} {} {}", row.address, row.inline_depth, row.func, row.line);
  auto [frame, new_frame] =
      frame_ids_.try_emplace(std::move(key), static_cast<int>(frames_.size()));
  if (new_frame) frames_.push_back(row);
  uint64_t pair = static_cast<uint64_t>(prefix + 1) << 32 | static_cast<uint32_t>(frame->second);
  auto [stack, new_stack] = stack_ids_.try_emplace(pair, static_cast<int>(stacks_.size()));
  if (new_stack) stacks_.push_back({frame->second, prefix});
  return stack->second;
}

int ThreadTables::push_frames(int prefix, model::FrameId id) {
  const run::Contents& contents = run_.contents();
  const model::Frame& frame = contents.frames[id.value];
  const model::Module& module = contents.modules[frame.module.value];
  FirefoxCategory category = category_of(module);
  bool relative = module.kind == model::ModuleKind::elf || module.kind == model::ModuleKind::vdso;
  int64_t address = relative ? static_cast<int64_t>(frame.address & 0xffffffffffff) : -1;
  const std::vector<model::Location>& locations = contents.locations[id.value];
  int depth = 0;
  for (size_t i = locations.size(); i-- > 0;) {  // outermost first
    const model::Location& at = locations[i];
    if (at.function.empty()) continue;
    int function = func(frame.module.value, at.function, at.file, at.function_line);
    prefix = push(prefix, {address, depth++, category, function, at.line});
  }
  if (depth > 0) return prefix;
  int function = func(frame.module.value, run::frame_name(contents, id), "", 0);
  return push(prefix, {address, 0, category, function, 0});
}

int ThreadTables::stack(model::StackId id) {
  const run::Contents& contents = run_.contents();
  std::vector<model::StackId> missing;
  int prefix = -1;
  size_t at = id.value < contents.stacks.size() ? id.value : 0;
  while (at != 0) {
    model::StackId here{static_cast<uint32_t>(at)};
    if (auto it = known_stacks_.find(here); it != known_stacks_.end()) {
      prefix = it->second;
      break;
    }
    missing.push_back(here);
    model::StackId parent = contents.stacks[at].parent;
    at = parent.value < at ? parent.value : 0;
  }
  for (size_t i = missing.size(); i-- > 0;) {
    prefix = push_frames(prefix, contents.stacks[missing[i].value].frame);
    known_stacks_[missing[i]] = prefix;
  }
  return prefix;
}

void ThreadTables::add(const model::Sample& sample) {
  samples_.push_back({sample.time, sample.weight_ns, stack(sample.stack)});
}

void ThreadTables::add(const SelectedWait& selected) {
  if (selected.blocked_ns <= 0) return;
  auto longer = [](const MarkerRow& a, const MarkerRow& b) { return a.length_ns > b.length_ns; };
  // A heap with the shortest on top: only the longest are kept.
  if (markers_.size() >= kFirefoxMarkersPerThread) {
    if (markers_.front().length_ns >= selected.blocked_ns) return;
    std::pop_heap(markers_.begin(), markers_.end(), longer);
    markers_.pop_back();
  }
  markers_.push_back({selected.begin_ns, selected.blocked_ns, selected.runqueue_ns,
                      stack(selected.wait.stack), selected.kind, selected.wait.syscall});
  std::push_heap(markers_.begin(), markers_.end(), longer);
}

void ThreadTables::write_samples(Output& output) {
  std::stable_sort(samples_.begin(), samples_.end(),
                   [](const SampleRow& a, const SampleRow& b) { return a.time < b.time; });
  output.write(
      fmt::format("\"samples\":{{\"length\":{},\"weightType\":\"tracing-ms\",", samples_.size()));
  output.write(column("stack", samples_, [](auto& r) { return or_null(r.stack, r.stack >= 0); }));
  output.write("," + column("time", samples_, [&](auto& r) { return ms(r.time); }) + ",");
  output.write(column("weight", samples_, [](auto& r) { return double(r.weight_ns) / 1e6; }) + ",");
  output.write(column("threadCPUDelta", samples_, [](auto& r) { return r.weight_ns; }) + "},\n");
}

void ThreadTables::write_markers(Output& output) {
  std::sort(markers_.begin(), markers_.end(), [](const MarkerRow& a, const MarkerRow& b) {
    return std::pair(a.begin, a.length_ns) < std::pair(b.begin, b.length_ns);
  });
  output.write(fmt::format("\"markers\":{{\"length\":{},", markers_.size()));
  output.write(column("data", markers_, [&](auto& r) {
    std::string text = fmt::format("{{\"type\":\"Wait\",\"kind\":{},\"runqueue\":{}",
                                   json_text(analysis::block_kind_name(r.kind)),
                                   static_cast<double>(r.runqueue_ns) / 1e6);
    if (std::string_view call = model::syscall_name(r.syscall); !call.empty()) {
      text += ",\"syscall\":" + json_text(call);
    }
    if (r.stack >= 0) {
      text += fmt::format(",\"cause\":{{\"time\":{},\"stack\":{}}}", ms(r.begin), r.stack);
    }
    return text + "}";
  }));
  output.write("," + column("name", markers_, [&](auto& r) {
                 return string(fmt::format("Wait: {}", analysis::block_kind_name(r.kind)));
               }));
  output.write("," + column("startTime", markers_, [&](auto& r) { return ms(r.begin); }));
  output.write("," +
               column("endTime", markers_, [&](auto& r) { return ms(r.begin + r.length_ns); }));
  output.write("," + column("phase", markers_, [](auto&) { return 1; }));  // an interval
  output.write("," +
               column("category", markers_,
                      [](auto&) { return static_cast<int>(FirefoxCategory::waiting); }) +
               "},\n");
}

void ThreadTables::write_stacks(Output& output) const {
  auto category = [&](const StackRow& row) {
    return static_cast<int>(frames_[static_cast<size_t>(row.frame)].category);
  };
  output.write(fmt::format("\"stackTable\":{{\"length\":{},", stacks_.size()));
  output.write(column("frame", stacks_, [](auto& r) { return r.frame; }) + ",");
  output.write(column("category", stacks_, category) + ",");
  output.write(column("subcategory", stacks_, [](auto&) { return 0; }) + ",");
  output.write(column("prefix", stacks_, [](auto& r) { return or_null(r.prefix, r.prefix >= 0); }) +
               "},\n");
  output.write(fmt::format("\"frameTable\":{{\"length\":{},", frames_.size()));
  output.write(column("address", frames_, [](auto& r) { return r.address; }) + ",");
  output.write(column("inlineDepth", frames_, [](auto& r) { return r.inline_depth; }) + ",");
  output.write(column("category", frames_, [](auto& r) { return static_cast<int>(r.category); }) +
               ",");
  output.write(column("func", frames_, [](auto& r) { return r.func; }) + ",");
  output.write(column("line", frames_, [](auto& r) { return or_null(r.line, r.line > 0); }));
  output.write("," + column("subcategory", frames_, [](auto&) { return 0; }));
  for (const char* name : {"nativeSymbol", "innerWindowID", "implementation", "column"}) {
    output.write("," + column(name, frames_, [](auto&) { return "null"; }));
  }
  output.write("},\n");
}

void ThreadTables::write_funcs(const std::vector<int>& libs, Output& output) const {
  output.write(fmt::format("\"funcTable\":{{\"length\":{},", funcs_.size()));
  output.write(column("name", funcs_, [](auto& r) { return r.name; }) + ",");
  output.write(column("isJS", funcs_, [](auto&) { return "false"; }) + ",");
  output.write(column("relevantForJS", funcs_, [](auto&) { return "false"; }) + ",");
  output.write(column("resource", funcs_, [](auto& r) { return r.resource; }) + ",");
  output.write(column("fileName", funcs_, [](auto& r) { return or_null(r.file, r.file >= 0); }));
  output.write("," +
               column("lineNumber", funcs_, [](auto& r) { return or_null(r.line, r.line > 0); }));
  output.write("," + column("columnNumber", funcs_, [](auto&) { return "null"; }) + "},\n");
  auto lib = [&](auto& r) { return or_null(libs[r.first], libs[r.first] >= 0); };
  constexpr int kLibrary = 1, kOther = 0;  // resourceTypes of the format
  output.write(fmt::format("\"resourceTable\":{{\"length\":{},", resources_.size()));
  output.write(column("lib", resources_, lib) + ",");
  output.write(column("name", resources_, [](auto& r) { return r.second; }) + ",");
  output.write(column("host", resources_, [](auto&) { return "null"; }) + ",");
  output.write(
      column("type", resources_, [&](auto& r) { return libs[r.first] >= 0 ? kLibrary : kOther; }) +
      "},\n");
  output.write(
      "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
      "\"functionSize\":[]},\n");
}

void ThreadTables::write(const model::Thread& thread, const std::string& process_name, pid_t pid,
                         const std::vector<int>& libs, Output& output) {
  bool is_main = pid == thread.tid;
  output.write(fmt::format(
      "{{\"name\":{},\"isMainThread\":{},\"processType\":\"default\",\"processName\":{},"
      "\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
      "\"unregisterTime\":null,\"pausedRanges\":[],\"pid\":\"{}\",\"tid\":{},\n",
      json_text(thread.name), is_main, json_text(process_name), pid, thread.tid));
  write_samples(output);
  write_markers(output);
  write_stacks(output);
  write_funcs(libs, output);
  output.write(column("stringArray", strings_, [](auto& text) { return json_text(text); }) + "}");
}

}  // namespace assay::formats
