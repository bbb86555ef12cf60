#include "formats/pprof/write_pprof.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "analysis/time/wait_kind.h"
#include "formats/export/missing_metric.h"
#include "formats/export/text.h"
#include "formats/export/wait_leaf.h"
#include "formats/gzip.h"
#include "formats/pprof/wire.h"
#include "model/heap/allocation_names.h"
#include "run/names.h"
#include "run/run_kind.h"

namespace assay::formats {
namespace {

// Field numbers of profile.proto.
enum ProfileField { kSampleType = 1, kSample, kMapping, kLocation, kFunction, kString };
constexpr int kDropFrames = 7, kTimeNanos = 9, kDurationNanos = 10, kPeriodType = 11, kPeriod = 12,
              kComment = 13, kDefaultSampleType = 14;

class Strings {
 public:
  Strings() { index(""); }
  int64_t index(std::string_view text) {
    auto [it, added] = known_.try_emplace(std::string(text), all_.size());
    if (added) all_.push_back(&it->first);
    return static_cast<int64_t>(it->second);
  }
  void write(WireWriter& profile) const {
    for (const std::string* text : all_) profile.bytes(kString, *text);
  }

 private:
  std::unordered_map<std::string, size_t> known_;
  std::vector<const std::string*> all_;
};

class Encoder {
 public:
  Encoder(const SelectedRun& run, const std::vector<TotalRow>& rows, Metric metric)
      : run_(run), contents_(run.contents()), rows_(rows), metric_(metric) {
    counted_ = run::counted_unit(contents_);
    types_ = {Metric::samples, Metric::cpu};
    if (counted_.empty() || has_any(rows, Metric::off))
      types_.insert(types_.end(), {Metric::waits, Metric::off, Metric::lock, Metric::runqueue});
    if (metric == Metric::wall) types_.push_back(Metric::wall);
    // Go's heap profiles have these four, in this order.
    if (is_heap(metric)) {
      types_ = {Metric::alloc_objects, Metric::alloc_space, Metric::inuse_objects,
                Metric::inuse_space};
    }
  }

  std::string encode() {
    for (Metric type : types_) profile_.message(kSampleType, value_type(type));
    lay_mappings();
    location_of_.resize(contents_.frames.size());
    for (const TotalRow& row : rows_) add_row(row);
    write_mappings();
    add_header();
    strings_.write(profile_);
    return profile_.str();
  }

 private:
  struct Place {
    uint64_t start = 0, limit = 0, offset = 0;
    bool used = false, functions = false, files = false, lines = false, inlines = false;
    bool offset_relative = false;
  };

  // What an imported profile counts keeps its name: it is no CPU time.
  std::string type_name(Metric type) const {
    if (type != Metric::cpu || counted_.empty()) return std::string(metric_name(type));
    return counted_ == "bytes" ? "space" : clean_text(counted_);
  }
  std::string_view type_unit(Metric type) const {
    if (type != Metric::cpu || counted_.empty()) return metric_unit(type);
    return counted_ == "bytes" ? "bytes" : "count";
  }

  WireWriter value_type(Metric type) {
    WireWriter message;
    message.number(1, strings_.index(type_name(type)));
    message.number(2, strings_.index(type_unit(type)));
    return message;
  }

  WireWriter heap_period() {
    WireWriter message;
    message.number(1, strings_.index("space"));
    message.number(2, strings_.index("bytes"));
    return message;
  }

  // One mapping per module, where its first process has it; id = module + 1.
  void lay_mappings() {
    places_.resize(contents_.modules.size());
    for (const run::TimedMapping& timed : contents_.mappings) {
      uint32_t module = timed.mapping.module.value;
      if (module >= places_.size() || places_[module].limit != 0) continue;
      bool elf = contents_.modules[module].kind == model::ModuleKind::elf ||
                 contents_.modules[module].kind == model::ModuleKind::vdso;
      places_[module].start = timed.mapping.start;
      places_[module].limit = timed.mapping.end;
      places_[module].offset = elf ? timed.mapping.file_offset : 0;
      places_[module].offset_relative = elf;
    }
    for (const model::Frame& frame : contents_.frames) {
      if (frame.module.value < places_.size()) make_room(frame);
    }
  }

  // Addresses must lie inside their mapping, whatever the first one covered.
  void make_room(const model::Frame& frame) {
    Place& place = places_[frame.module.value];
    if (place.limit == 0) {
      place.offset_relative = contents_.modules[frame.module.value].kind == model::ModuleKind::elf;
      place.start = place.limit = frame.address;
      place.offset = place.offset_relative ? frame.address : 0;
    }
    if (place.offset_relative && frame.address < place.offset) {
      place.start -= std::min(place.start, place.offset - frame.address);
      place.offset = frame.address;
    }
    uint64_t address = absolute(frame);
    place.start = std::min(place.start, address);
    if (address >= place.limit && address != UINT64_MAX) place.limit = address + 1;
  }

  uint64_t absolute(const model::Frame& frame) const {
    const Place& place = places_[frame.module.value];
    if (!place.offset_relative) return frame.address;
    return frame.address - place.offset + place.start;
  }

  uint64_t location(model::FrameId id) {
    uint32_t& known = location_of_[id.value];
    if (known != 0) return known;
    known = ++locations_;
    const model::Frame& frame = contents_.frames[id.value];
    const model::Module& module = contents_.modules[frame.module.value];
    Place& place = places_[frame.module.value];
    WireWriter message;
    message.number(1, uint64_t{known});
    bool marker = module.kind == model::ModuleKind::marker;
    if (!marker) {
      place.used = true;
      message.number(2, uint64_t{frame.module.value} + 1);
      message.number(3, absolute(frame));
    }
    const std::vector<model::Location>& lines = contents_.locations[id.value];
    place.inlines = place.inlines || lines.size() > 1;
    for (const model::Location& line : lines) {
      if (line.function.empty()) continue;
      place.functions = true;
      place.files = place.files || !line.file.empty();
      place.lines = place.lines || line.line > 0;
      add_line(message, function(line), line.line);
    }
    if (marker)
      add_line(message, function({run::frame_name(contents_, id), "", "", 0, 0, false}), 0);
    profile_.message(kLocation, message);
    return known;
  }

  static void add_line(WireWriter& location, uint64_t function, uint32_t line) {
    WireWriter message;
    message.number(1, function);
    message.number(2, uint64_t{line});
    location.message(4, message);
  }

  uint64_t function(const model::Location& line) {
    std::string name = clean_text(line.function), file = clean_text(line.file);
    std::string system = line.system_name.empty() ? name : clean_text(line.system_name);
    std::string key =
        name + '\0' + system + '\0' + file + '\0' + std::to_string(line.function_line);
    auto [it, added] = functions_.try_emplace(std::move(key), functions_.size() + 1);
    if (!added) return it->second;
    WireWriter message;
    message.number(1, uint64_t{it->second});
    message.number(2, strings_.index(name));
    message.number(3, strings_.index(system));
    message.number(4, strings_.index(file));
    message.number(5, uint64_t{line.function_line});
    profile_.message(kFunction, message);
    return it->second;
  }

  // In a profile of wall time waits have a leaf of their own, which tells them from running.
  void add_row(const TotalRow& row) {
    if (metric_ != Metric::wall || !row.waiting) return add_sample(row);
    TotalRow blocked = row, queued = row;
    blocked.runqueue_ns = queued.off_ns = queued.waits = 0;
    add_sample(blocked, leaf_location(blocked_leaf(row.kind)));
    add_sample(queued, leaf_location(kRunQueueLeaf));
  }

  uint64_t leaf_location(WaitLeaf leaf) {
    uint64_t& known = leaf_locations_[static_cast<size_t>(leaf)];
    if (known != 0) return known;
    known = ++locations_;
    WireWriter message;
    message.number(1, known);
    add_line(message, function({std::string(wait_leaf_name(leaf)), "", "", 0, 0, false}), 0);
    profile_.message(kLocation, message);
    return known;
  }

  void add_sample(const TotalRow& row, uint64_t leaf_location = 0) {
    WireWriter packed, message;
    if (leaf_location != 0) packed.varint(leaf_location);
    size_t at = row.stack.value < contents_.stacks.size() ? row.stack.value : 0;
    while (at != 0) {
      const model::StackNode& node = contents_.stacks[at];
      packed.varint(location(node.frame));
      at = node.parent.value < at ? node.parent.value : 0;
    }
    message.message(1, packed);
    packed.clear();
    bool any = false;
    for (Metric type : types_) {
      packed.varint(static_cast<uint64_t>(row.of(type)));
      any = any || row.of(type) != 0;
    }
    if (!any) return;
    message.message(2, packed);
    labels(row, message);
    profile_.message(kSample, message);
  }

  void labels(const TotalRow& row, WireWriter& sample) {
    const model::Thread& thread = run_.thread(row.thread);
    const model::Process& process = run_.process_of(row.thread);
    auto text = [&](std::string_view key, std::string_view value) {
      if (value.empty()) return;
      WireWriter label;
      label.number(1, strings_.index(key));
      label.number(2, strings_.index(clean_text(value)));
      sample.message(3, label);
    };
    auto number = [&](std::string_view key, int64_t value) {
      if (value == 0) return;
      WireWriter label;
      label.number(1, strings_.index(key));
      label.number(3, value);
      sample.message(3, label);
    };
    if (thread.process.value < contents_.processes.size()) {
      text("process", run_.process_label(thread.process));
    }
    number("pid", process.pid);
    text("role", process.role);
    text("thread", thread.name);
    number("tid", thread.tid);
    text("pool", thread.pool);
    std::string_view category = row.waiting ? analysis::block_kind_id(row.kind) : "cpu";
    text("category", row.heap ? "heap" : category);
  }

  // The program of the process that has most of the metric.
  std::string_view main_program() const {
    std::unordered_map<uint32_t, int64_t> sums;
    int64_t most = -1;
    std::string_view exe;
    for (const TotalRow& row : rows_) {
      const model::Process& process = run_.process_of(row.thread);
      int64_t sum = sums[process.id.value] += row.of(metric_);
      if (sum <= most) continue;
      most = sum;
      exe = process.exe;
    }
    return exe;
  }

  void write_mappings() {
    // The main program first: readers take mapping[0] for it.
    std::vector<uint32_t> order;
    std::string_view exe = main_program();
    for (uint32_t i = 0; i < places_.size(); ++i) {
      if (places_[i].used) order.push_back(i);
    }
    std::stable_partition(order.begin(), order.end(),
                          [&](uint32_t i) { return contents_.modules[i].path == exe; });
    for (uint32_t i : order) {
      const Place& place = places_[i];
      WireWriter message;
      message.number(1, uint64_t{i} + 1);
      message.number(2, place.start);
      message.number(3, place.limit);
      message.number(4, place.offset);
      message.number(5, strings_.index(clean_text(contents_.modules[i].path)));
      message.number(6, strings_.index(clean_text(contents_.modules[i].build_id)));
      message.number(7, uint64_t{place.functions});
      message.number(8, uint64_t{place.files});
      message.number(9, uint64_t{place.lines});
      message.number(10, uint64_t{place.inlines});
      profile_.message(kMapping, message);
    }
  }

  void add_header() {
    const model::RunInfo& info = contents_.info;
    if (info.utc_begin_ns != 0) {
      profile_.number(kTimeNanos, info.utc_begin_ns + run_.begin_ns() - info.window_begin_ns);
    }
    if (counted_.empty()) profile_.number(kDurationNanos, run_.end_ns() - run_.begin_ns());
    if (is_heap(metric_)) {
      profile_.message(kPeriodType, heap_period());
      // So that readers charge the caller of malloc or operator new.
      profile_.number(kDropFrames, strings_.index(model::allocation_functions_pattern()));
      profile_.number(kPeriod, int64_t{1});  // the values are scaled already
    } else {
      profile_.message(kPeriodType, value_type(Metric::cpu));
      profile_.number(kPeriod, info.sample_period_ns);
    }
    std::string comment =
        fmt::format("assay {}: {}, {}", info.assay_version, info.target, info.backend);
    profile_.number(kComment, strings_.index(clean_text(comment)));
    profile_.number(kDefaultSampleType, strings_.index(type_name(metric_)));
  }

  const SelectedRun& run_;
  const run::Contents& contents_;
  const std::vector<TotalRow>& rows_;
  Metric metric_;
  std::string counted_;  // by an imported profile; empty: time
  std::vector<Metric> types_;
  WireWriter profile_;
  Strings strings_;
  std::vector<Place> places_;          // by module
  std::vector<uint32_t> location_of_;  // by frame; 0: not written yet
  uint32_t locations_ = 0;
  std::array<uint64_t, kWaitLeafCount> leaf_locations_{};  // 0: not written yet
  std::unordered_map<std::string, uint64_t> functions_;
};

}  // namespace

Result<void> write_pprof(const SelectedRun& run, const std::vector<TotalRow>& rows, Metric metric,
                         Output& output) {
  auto packed = gzip(Encoder(run, rows, metric).encode());
  if (!packed) return std::unexpected(packed.error());
  output.write(*packed);
  return {};
}

}  // namespace assay::formats
