// What the tests of this room share: exporting a run to text, and reading one back. Test support.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "analysis/testing/fake_run.h"
#include "formats/export/export.h"
#include "formats/export/totals.h"
#include "formats/import/run_builder.h"
#include "run/run_fixture.h"

namespace assay::formats {

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string exported(const run::Reader& reader, const ExportOptions& options) {
  run::ScratchDirectory scratch;
  auto done = export_run(reader, options, scratch.file("out"));
  EXPECT_TRUE(done) << done.error().text();
  return slurp(scratch.file("out"));
}
inline std::string exported(const run::Reader& reader, const FormatSpec* format,
                            std::optional<Metric> metric = std::nullopt) {
  ExportOptions options;
  options.format = format;
  options.metric = metric;
  return exported(reader, options);
}

// Two processes, three threads, on-CPU and off-CPU, inlines, kernel and a truncated stack.
inline void fill_server(analysis::FakeRun& run) {
  run.edit().info.window_end_ns = 2 * kNsPerSecond;
  run.edit().info.target = "--port 8000";
  run.edit().info.oncpu_event = "cpu-clock";
  model::ProcessId main = run.add_process(100, "/opt/server", "main");
  model::ProcessId worker = run.add_process(200, "/opt/server", "worker 0");
  model::ThreadId accept = run.add_thread(main, 100, "accept");
  model::ThreadId one = run.add_thread(worker, 201, "pool-1", "pool-*");
  model::ThreadId two = run.add_thread(worker, 202, "pool-2", "pool-*");
  auto hot = run.stack({"_start", "main", "serve|parse", "lib.so.1:memcpy"});
  auto kernel = run.stack({"_start", "main", "libc.so.6:read", "k:vfs_read"});
  auto cut = run.stack({"!:1", "libc.so.6:malloc"});
  run.add_samples(one, hot, 30, 10 * kNsPerMs);
  run.add_samples(two, kernel, 10, 10 * kNsPerMs);
  run.add_samples(accept, cut, 5, 10 * kNsPerMs);
  auto lock = run.stack({"_start", "main", "libc.so.6:pthread_mutex_lock", "k:futex_wait"});
  run.add_wait(one, lock, 1 * kNsPerSecond, 300 * kNsPerMs, {model::WaitFlag::runqueue_known})
      .runqueue_ns = 50 * kNsPerMs;
  run.add_wait(two, lock, 1900 * kNsPerMs, 200 * kNsPerMs);  // beyond the window: cut
  run.add_wait(accept, kernel, 100 * kNsPerMs, 7, {model::WaitFlag::preempted}).runqueue_ns = 7;
}

struct Sums {
  int64_t samples = 0, cpu = 0, waits = 0, off = 0, runqueue = 0;
  bool operator==(const Sums&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Sums& s) {
  return out << s.samples << ' ' << s.cpu << ' ' << s.waits << ' ' << s.off << ' ' << s.runqueue;
}
inline Sums sums_of(const run::Reader& reader, const Selection& selection = {}) {
  Sums sums;
  auto run = SelectedRun::make(reader, selection);
  EXPECT_TRUE(run) << run.error().text();
  auto rows = sum_up(**run);
  EXPECT_TRUE(rows);
  for (const TotalRow& row : *rows) {
    sums.samples += row.samples;
    sums.cpu += row.cpu_ns;
    sums.waits += row.waits;
    sums.off += row.off_ns;
    sums.runqueue += row.runqueue_ns;
  }
  return sums;
}

// What `read` puts into a builder, as a run that was written and opened again.
template <class Read>
std::unique_ptr<run::Reader> imported(const run::ScratchDirectory& scratch, const Read& read) {
  std::string path = scratch.file("imported.assay");
  auto writer = run::Writer::create(path, {}, true);
  EXPECT_TRUE(writer) << writer.error().text();
  RunBuilder builder(**writer, [](const std::string& name) { return name; });
  builder.begin_file("test");
  Result<void> done = read(builder);
  EXPECT_TRUE(done) << done.error().text();
  auto finished = builder.finish({});
  EXPECT_TRUE(finished) << finished.error().text();
  writer->reset();
  auto reader = run::Reader::open(path);
  EXPECT_TRUE(reader) << reader.error().text();
  return reader ? std::move(*reader) : nullptr;
}

}  // namespace assay::formats
