// Fuzz entry of opening a run: any bytes as a file, read to the end.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "run/reader.h"
#include "run/sql/sql.h"
#include "run/writer.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace assay;

// Opening needs a name; one file in memory, rewritten for each input.
const std::string& scratch_file() {
  static const std::string path = [] {
    std::string name = "/dev/shm/assay-fuzz-XXXXXX";
    int fd = ::mkstemp(name.data());
    if (fd < 0) {
      name = (std::filesystem::temp_directory_path() / "assay-fuzz-XXXXXX").string();
      fd = ::mkstemp(name.data());
    }
    if (fd < 0) std::abort();
    ::close(fd);
    static std::string to_remove = name;
    std::atexit([] { ::unlink(to_remove.c_str()); });
    return name;
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string& path = scratch_file();
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  auto reader = run::Reader::open(path);
  if (!reader) {
    if (reader.error().what.empty()) std::abort();
    return 0;
  }
  const run::Contents& contents = (*reader)->contents();
  auto touch = [&](const auto& row) {
    if (row.thread.value >= contents.threads.size()) std::abort();
    size_t depth = 0;
    for (auto id = row.stack; id.value != 0; id = contents.stacks.at(id.value).parent) {
      if (++depth > contents.stacks.size()) std::abort();
    }
  };
  (void)(*reader)->for_each_sample({}, touch);
  (void)(*reader)->for_each_wait({}, touch);
  for (const model::Series& series : contents.series) (void)(*reader)->points(series.id);
  run::SqlSink sink;
  sink.row = [](std::span<const run::SqlValue>) { return true; };
  (void)run::run_sql(path, "SELECT stack_text(stack), leaf, syscall_name FROM waits LIMIT 50",
                     sink);
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::string path = scratch_file() + ".seed";
  auto writer = run::Writer::create(path, {}, true);
  if (!writer) std::abort();
  (*writer)->put_process({});
  (*writer)->put_thread({});
  (*writer)->add_module({{0}, model::ModuleKind::elf, "server", "ab"});
  for (uint32_t i = 0; i < 20; ++i) (*writer)->add_frame({i}, {{0}, i});
  for (uint32_t i = 1; i < 50; ++i) (*writer)->add_stack({i}, {{i / 2}, {i % 20}});
  std::vector<model::Location> names{{"f()", "_Z1fv", "f.cc", 1, 1, false}};
  (*writer)->put_locations({3}, names);
  (*writer)->add_series({});
  for (int i = 0; i < 200; ++i) {
    (*writer)->add_sample({i * 1'000, {0}, {static_cast<uint32_t>(i % 50)}, 7, 0});
    model::Wait wait;
    wait.start = i * 1'000;
    wait.duration_ns = i;
    (*writer)->add_wait(wait);
    (*writer)->add_point({{0}, i, i});
  }
  if (!(*writer)->finish({})) std::abort();
  std::ifstream in(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  ::unlink(path.c_str());
  return {bytes};
}
