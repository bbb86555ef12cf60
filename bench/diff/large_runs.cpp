// large_runs: writes two run files of a million samples each, to time `assay diff` with.
//
// usage: large_runs DIRECTORY [SAMPLES]; then: time assay diff DIRECTORY/a.assay --vs
// DIRECTORY/b.assay Stacks look like a real server's: 20,000 call paths of depth 10–40 over 3,000
// functions, 100 threads. In b one function in a hundred costs 10 % more.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "run/writer.h"

namespace {

using namespace assay;

constexpr uint32_t kThreads = 100;
constexpr uint32_t kFunctions = 3'000;
constexpr uint32_t kPaths = 20'000;
constexpr int64_t kPeriodNs = 1'000'000;

void add_names(run::Writer& writer) {
  writer.put_process({});
  model::Module module;
  module.kind = model::ModuleKind::elf;
  module.path = "/opt/server";
  writer.add_module(module);
  for (uint32_t f = 0; f < kFunctions; ++f) {
    model::Frame frame{};
    frame.module = {0};
    frame.address = 0x1000 + 64 * f;
    writer.add_frame({f}, frame);
    model::Location location;
    location.function = "ns::Class::function_" + std::to_string(f) + "(int)";
    location.file = "/src/server.cpp";
    writer.put_locations({f}, std::span(&location, 1));
  }
  for (uint32_t t = 0; t < kThreads; ++t)
    writer.put_thread(
        {{t}, {0}, static_cast<pid_t>(100 + t), "worker", "worker-*", 0, model::kStillRunning});
}

std::vector<std::pair<model::StackId, uint32_t>> add_stacks(run::Writer& writer) {
  std::mt19937_64 random(7);
  uint32_t next = 1;
  std::vector<std::pair<model::StackId, uint32_t>> leaves;  // and the leaf's function
  std::vector<std::vector<model::StackId>> by_depth(41);
  by_depth[0].push_back({0});
  for (uint32_t i = 0; i < kPaths; ++i) {
    uint32_t depth = 10 + static_cast<uint32_t>(random() % 30);
    model::StackId stack{0};
    uint32_t function = 0;
    uint32_t from = 0;
    // Shares most of its depth with an earlier path, as calls do.
    for (uint32_t d = depth; d > 1; --d) {
      if (by_depth[d - 1].empty()) continue;
      from = d - 1;
      stack = by_depth[from][random() % by_depth[from].size()];
      break;
    }
    for (uint32_t d = from; d < depth; ++d) {
      function = static_cast<uint32_t>((d * 37 + random() % 60 * 11) % kFunctions);
      model::StackId id{next++};
      writer.add_stack(id, {stack, {function}});
      by_depth[d + 1].push_back(id);
      stack = id;
    }
    leaves.emplace_back(stack, function);
  }
  return leaves;
}

int write_run(const std::string& path, int samples, bool dearer) {
  model::RunInfo info;
  info.backend = "perf_event";
  info.sample_period_ns = kPeriodNs;
  info.window_end_ns = int64_t{samples} * kPeriodNs / kThreads;
  auto writer = run::Writer::create(path, info, true);
  if (!writer) return std::fprintf(stderr, "%s\n", writer.error().text().c_str()), 1;
  add_names(**writer);
  auto leaves = add_stacks(**writer);
  std::mt19937_64 random(dearer ? 2 : 1);
  for (int i = 0; i < samples; ++i) {
    auto [stack, function] = leaves[std::min(random() % kPaths, random() % kPaths)];
    int64_t weight = kPeriodNs + (dearer && function % 100 == 0 ? kPeriodNs / 10 : 0);
    (*writer)->add_sample({int64_t{i} * kPeriodNs / kThreads,
                           {static_cast<uint32_t>(i) % kThreads},
                           stack,
                           weight,
                           0});
    if (i % 100'000 == 99'999) {
      auto flushed = (*writer)->flush(int64_t{i} * kPeriodNs / kThreads);
      if (!flushed) return std::fprintf(stderr, "%s\n", flushed.error().text().c_str()), 1;
    }
  }
  info.finished = true;
  info.end_reason = "time";
  auto finished = (*writer)->finish(info);
  if (!finished) return std::fprintf(stderr, "%s\n", finished.error().text().c_str()), 1;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int samples = argc > 2 ? std::atoi(argv[2]) : 1'000'000;
  std::filesystem::create_directories(argv[1]);
  std::string directory = argv[1];
  int code = write_run(directory + "/a.assay", samples, false);
  return code != 0 ? code : write_run(directory + "/b.assay", samples, true);
}
