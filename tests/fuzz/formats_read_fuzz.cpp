// Fuzz entry of the readers of foreign profiles: any bytes go through every reader, whatever format
// they look like. Accepted data go to a writer that keeps nothing; a refusal must contain the
// file's name.
//
// The corpus is tests/golden: real files of every format.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/folded/read_folded.h"
#include "formats/gperftools/read_gperftools.h"
#include "formats/perf/perf_data.h"
#include "formats/perf/read_perf_script.h"
#include "formats/pprof/read_pprof.h"
#include "formats/speedscope/read_speedscope.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace assay;
using namespace assay::formats;

class Nowhere final : public run::Writer {
 public:
  void set_info(const model::RunInfo&) override {}
  void add_fact(const model::Fact&) override {}
  void add_note(const model::QualityNote&) override {}
  void put_process(const model::Process&) override {}
  void put_thread(const model::Thread&) override {}
  void add_module(const model::Module&) override {}
  void add_frame(model::FrameId, const model::Frame&) override {}
  void add_stack(model::StackId, const model::StackNode&) override {}
  void add_mapping(model::ProcessId, const model::Mapping&, TimeNs) override {}
  void put_locations(model::FrameId, std::span<const model::Location>) override {}
  void add_sample(const model::Sample& sample) override {
    if (sample.weight_ns < 0) std::abort();
  }
  void add_wait(const model::Wait& wait) override {
    if (wait.duration_ns < 0 || wait.runqueue_ns > wait.duration_ns) std::abort();
  }
  void add_heap_sum(const model::HeapSum& sum) override {
    if (std::min({sum.live_bytes, sum.live_objects, sum.bytes, sum.objects, sum.rate_bytes}) < 0)
      std::abort();
  }
  void put_open_waits(std::vector<model::Wait>) override {}
  void add_series(const model::Series&) override {}
  void add_point(const model::Point&) override {}
  void add_loss(const model::Loss&) override {}
  void put_source_line(const std::string&, uint32_t, const std::string&) override {}
  void put_data_name(const model::DataName&) override {}
  bool is_filling() const override { return false; }
  Result<void> flush(TimeNs) override { return {}; }
  Result<void> finish(const model::RunInfo&) override { return {}; }
};

// Touches all that records point at.
class Toucher final : public PerfDataVisitor {
 public:
  void sample(const PerfHead&, const PerfSample& sample) override {
    for (uint64_t ip : sample.kernel_chain) add(ip);
    for (uint64_t ip : sample.user_chain) add(ip);
    for (std::byte byte : sample.stack) add(static_cast<uint64_t>(byte));
  }
  void mapped(const PerfHead&, const PerfMapping& mapping) override {
    for (char c : mapping.path) add(static_cast<uint8_t>(c));
  }
  void named(const PerfHead&, std::string_view name, bool) override { add(name.size()); }
  void forked(const PerfHead&, pid_t) override {}
  void exited(const PerfHead&) override {}
  void switched(const PerfHead&, bool, bool) override {}
  void lost(const PerfHead&, uint64_t count) override { add(count); }

 private:
  void add(uint64_t value) { sum_ = sum_ + value; }
  volatile uint64_t sum_ = 0;  // keeps the reads
};

void check(const Result<void>& done) {
  if (!done && !done.error().what.starts_with("input")) std::abort();
}

template <class Read>
void try_reader(const Read& read) {
  Nowhere writer;
  RunBuilder builder(writer, [](const std::string& name) { return name; });
  builder.begin_file("input");
  check(read(builder));
  (void)builder.finish({});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input = Input::of_bytes("input", std::string(data, data + size));
  if (auto head = input.head(); !head) check(std::unexpected(head.error()));
  check(input.load());
  if (auto perf = PerfData::open(input)) {
    Toucher toucher;
    check(perf->visit(toucher));
  } else {
    check(std::unexpected(perf.error()));
  }
  ReadOptions options;
  options.unit_ns = 1;  // counts of samples would be written out one by one
  try_reader([&](RunBuilder& b) { return read_folded(input, options, b); });
  try_reader([&](RunBuilder& b) { return read_perf_script(input, options, b); });
  try_reader([&](RunBuilder& b) { return read_gperftools_heap(input, b); });
  try_reader([&](RunBuilder& b) { return read_speedscope(input, {}, b); });
  // These expand counts into rows, which takes time and finds nothing: finish() is left out.
  Nowhere writer;
  RunBuilder builder(writer, [](const std::string& name) { return name; });
  check(read_gperftools_cpu(input, builder));
  check(read_pprof(input, builder));
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(GOLDEN_DIR)) {
    if (entry.path().extension() != ".md") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::vector<uint8_t>> corpus;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    // Mutations of compressed bytes would only test zlib.
    Input input = Input::of_bytes(path.filename(), std::move(bytes));
    if (input.load()) corpus.emplace_back(input.bytes().begin(), input.bytes().end());
  }
  return corpus;
}
