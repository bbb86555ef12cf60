// Fuzz entry of a run together with the journal beside it: any bytes as both files, read to the
// end.
//
// An input is the run's size (four bytes, little end first), the run and the journal. Reading must
// leave both files as they are.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/testing/temporary_directory.h"
#include "run/file/run_file.h"
#include "run/file/sqlite.h"
#include "run/reader.h"
#include "run/writer.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace assay;

// Opening needs names; one folder in memory, rewritten for each input.
const TemporaryDirectory& folder() {
  static const TemporaryDirectory the_folder(TemporaryDirectory::Where::memory);
  return the_folder;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void make_run(const std::string& path) {
  auto writer = run::Writer::create(path, {}, true);
  if (!writer) std::abort();
  (*writer)->put_process({});
  (*writer)->put_thread({});
  (*writer)->add_module({{0}, model::ModuleKind::elf, "server", "ab"});
  for (uint32_t i = 0; i < 20; ++i) (*writer)->add_frame({i}, {{0}, i});
  for (uint32_t i = 1; i < 50; ++i) (*writer)->add_stack({i}, {{i / 2}, {i % 20}});
  for (int i = 0; i < 200; ++i) {
    model::Wait wait;
    wait.start = i * 1'000;
    wait.duration_ns = i;
    (*writer)->add_wait(wait);
  }
  if (!(*writer)->finish({})) std::abort();
}

// A writer with so little memory that it changes the run before it commits.
std::vector<uint8_t> cut_off(const char* changes) {
  std::string path = folder() / "seed", journal = path + "-journal";
  make_run(path);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  auto database = run::Database::open(run::RunFile::adopt(std::move(fd), journal), path);
  std::string sql =
      "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = FULL;"
      "PRAGMA cache_size = 1; BEGIN;";
  if (!database || !database->execute((sql + changes).c_str())) std::abort();
  std::string run_bytes = bytes_of(path), journal_bytes = bytes_of(journal);
  auto size = static_cast<uint32_t>(run_bytes.size());
  std::vector<uint8_t> input(sizeof size);
  std::memcpy(input.data(), &size, sizeof size);
  input.insert(input.end(), run_bytes.begin(), run_bytes.end());
  input.insert(input.end(), journal_bytes.begin(), journal_bytes.end());
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t run_size = 0;
  if (size < sizeof run_size) return 0;
  std::memcpy(&run_size, data, sizeof run_size);
  std::string rest(reinterpret_cast<const char*>(data) + sizeof run_size, size - sizeof run_size);
  run_size = static_cast<uint32_t>(std::min<size_t>(run_size, rest.size()));
  std::string path = folder() / "run", journal = path + "-journal";
  write_bytes(path, rest.substr(0, run_size));
  write_bytes(journal, rest.substr(run_size));
  auto reader = run::Reader::open(path);
  if (reader) {
    (void)(*reader)->for_each_sample({}, [](const model::Sample&) {});
    (void)(*reader)->for_each_wait({}, [](const model::Wait&) {});
  } else if (reader.error().what.empty()) {
    std::abort();
  }
  if (bytes_of(path) != rest.substr(0, run_size) || bytes_of(journal) != rest.substr(run_size))
    std::abort();
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  return {cut_off("UPDATE frame SET address = address + 1; UPDATE stack SET frame = 1;"
                  "INSERT INTO note SELECT NULL, 'a', printf('%04000d', id), '' FROM stack;"),
          cut_off("DELETE FROM stack; DELETE FROM wait_block;"
                  "INSERT INTO fact SELECT NULL, 'a', printf('%0900d', id), '' FROM frame;"),
          cut_off("INSERT INTO point SELECT NULL, 0, id, id FROM stack;")};
}
