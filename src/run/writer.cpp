#include "run/writer.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>

#include <fcntl.h>
#include <unistd.h>

#include "base/private_file.h"
#include "base/unique_fd.h"
#include "run/file/new_file.h"
#include "run/file/run_vfs.h"
#include "run/file/schema.h"
#include "run/file/sqlite.h"
#include "run/pending.h"
#include "run/run_tables.h"

namespace assay::run {
namespace {

// While a capture runs, no other program may open its file (EXCLUSIVE), so that no reader can delay
// it. The rollback journal makes kill -9 harmless; FULL makes a loss of power harmless too: about four
// syncs a second, by the writer's own thread.
constexpr const char* kWriterPragmas =
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = FULL;"
    "PRAGMA temp_store = MEMORY; BEGIN EXCLUSIVE; COMMIT;";

// No other program sees a draft before it is complete.
constexpr const char* kDraftPragmas =
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
    "PRAGMA temp_store = MEMORY; BEGIN";

// Two dozen tables of mostly one page each are most of a short run: smaller pages make it a
// fraction. Large runs keep large pages, which are read faster.
constexpr int64_t kSmallBytes = int64_t{4} << 20;
constexpr const char* kSmallPages = "PRAGMA page_size = 1024";

// A busy server ends hundreds of thousands of waits a second: flushed at this many, they take 5 MB.
constexpr size_t kManyWaits = size_t{1} << 16;

class FileWriter : public Writer {
 public:
  FileWriter(Database database, std::string path, const model::RunInfo& info)
      : database_(std::move(database)), path_(std::move(path)), tables_(database_), info_(info) {}
  FileWriter(UniqueFd draft, std::string draft_path, const model::RunInfo& info)
      : draft_(std::move(draft)),
        draft_path_(std::move(draft_path)),
        tables_(database_),
        info_(info) {}

  ~FileWriter() override {
    if (!closed_) close_file();
  }

  Result<void> start() {
    if (auto done = database_.execute(kWriterPragmas); !done) return done;
    return tables_.prepare();
  }

  void set_info(const model::RunInfo& info) override {
    with_pending([&](Pending& pending) { pending.info = info; });
  }
  void add_fact(const model::Fact& fact) override {
    with_pending([&](Pending& pending) { pending.facts.push_back(fact); });
  }
  void add_note(const model::QualityNote& note) override {
    with_pending([&](Pending& pending) { pending.notes.push_back(note); });
  }
  void put_process(const model::Process& process) override {
    with_pending([&](Pending& pending) { pending.processes.push_back(process); });
  }
  void put_thread(const model::Thread& thread) override {
    with_pending([&](Pending& pending) { pending.threads.push_back(thread); });
  }
  void add_module(const model::Module& module) override {
    with_pending([&](Pending& pending) { pending.modules.push_back(module); });
  }
  void add_frame(model::FrameId id, const model::Frame& frame) override {
    with_pending([&](Pending& pending) { pending.frames.emplace_back(id, frame); });
  }
  void add_stack(model::StackId id, const model::StackNode& node) override {
    with_pending([&](Pending& pending) { pending.stacks.emplace_back(id, node); });
  }
  void add_mapping(model::ProcessId process, const model::Mapping& mapping,
                   TimeNs from_ns) override {
    with_pending([&](Pending& pending) {
      pending.mappings.push_back({process, mapping, from_ns});
    });
  }
  void put_locations(model::FrameId id, std::span<const model::Location> locations) override {
    std::vector<model::Location> copy(locations.begin(), locations.end());
    with_pending([&](Pending& pending) { pending.locations.emplace_back(id, std::move(copy)); });
  }
  void add_sample(const model::Sample& sample) override {
    with_pending([&](Pending& pending) { pending.samples.push_back(sample); });
  }
  void add_wait(const model::Wait& wait) override {
    with_pending([&](Pending& pending) {
      pending.waits.push_back(wait);
      filling_ = pending.waits.size() >= kManyWaits;
    });
  }
  void put_open_waits(std::vector<model::Wait> waits) override {
    with_pending([&](Pending& pending) { pending.open_waits = std::move(waits); });
  }
  void add_heap_alloc(const model::HeapAlloc& alloc) override {
    with_pending([&](Pending& pending) { pending.heap_allocs.push_back(alloc); });
  }
  void add_heap_free(const model::HeapFree& end) override {
    with_pending([&](Pending& pending) { pending.heap_frees.push_back(end); });
  }
  void add_heap_sum(const model::HeapSum& sum) override {
    with_pending([&](Pending& pending) { pending.heap_sums.push_back(sum); });
  }
  void add_heap_snapshot(const model::HeapSnapshot& snapshot) override {
    with_pending([&](Pending& pending) { pending.heap_snapshots.push_back(snapshot); });
  }
  void add_series(const model::Series& series) override {
    with_pending([&](Pending& pending) { pending.series.push_back(series); });
  }
  void add_point(const model::Point& point) override {
    with_pending([&](Pending& pending) { pending.points.push_back(point); });
  }
  void add_loss(const model::Loss& loss) override {
    with_pending([&](Pending& pending) { pending.losses.push_back(loss); });
  }
  void put_data_name(const model::DataName& name) override {
    with_pending([&](Pending& pending) { pending.data_names.push_back(name); });
  }
  void put_source_line(const std::string& file, uint32_t line, const std::string& text) override {
    with_pending([&](Pending& pending) { pending.source_lines.push_back({file, line, text}); });
  }

  bool is_filling() const override { return filling_; }

  Result<void> flush(TimeNs complete_until_ns) override {
    if (closed_) return fail("{}: it is closed; nothing can be added", database_.path());
    take_pending();
    if (flushing_.info) info_ = *flushing_.info;
    info_.window_end_ns = std::max(info_.window_end_ns, complete_until_ns);
    info_.finished = false;
    return commit();
  }

  Result<void> finish(const model::RunInfo& info) override {
    if (closed_) return fail("{}: it is closed; nothing can be added", database_.path());
    take_pending();
    info_ = info;
    info_.finished = true;
    flushing_.open_waits.emplace();
    if (auto done = commit(); !done) return done;
    closed_ = true;
    tables_.release();
    if (is_draft()) {
      close_file();
      return {};
    }
    return close_durably(pack_if_small());
  }

 private:
  // After a failure or finish() data cannot be written, so they are not accepted: memory stays
  // bounded.
  template <class Add>
  void with_pending(const Add& add) {
    std::lock_guard lock(mutex_);
    if (!closed_) add(pending_);
  }

  void take_pending() {
    std::lock_guard lock(mutex_);
    std::swap(pending_, flushing_);
    filling_ = false;
  }

  bool is_draft() const { return !draft_path_.empty(); }

  // Now that it is known how much there is to write, if this is all.
  Result<void> make_draft() {
    auto made = Database::open(RunFile::adopt(std::move(draft_), ""), draft_path_);
    if (!made) return std::unexpected(made.error());
    database_ = std::move(*made);
    if (info_.finished && flushing_.bytes_at_most() < kSmallBytes) {
      if (auto done = database_.execute(kSmallPages); !done) return done;
    }
    if (auto done = database_.execute(kDraftPragmas); !done) return done;
    if (auto done = database_.execute(kSchemaSql); !done) return done;
    if (auto done = database_.execute("COMMIT"); !done) return done;
    return tables_.prepare();
  }

  Result<void> commit() {
    bool missing = is_draft() && database_.handle() == nullptr;
    auto done = missing ? make_draft() : Result<void>{};
    if (done) done = write_transaction();
    flushing_.clear();
    if (!done) give_up(done.error());
    return done;
  }

  Result<void> write_transaction() {
    if (auto done = database_.execute("BEGIN IMMEDIATE"); !done) return done;
    if (auto done = tables_.write(flushing_, info_.window_end_ns); !done) return done;
    if (auto done = tables_.write_info(info_); !done) return done;
    return database_.execute("COMMIT");
  }

  // Rolls back to the last commit and closes. What remains of the disk usually suffices to say why.
  void give_up(Error& error) {
    std::lock_guard lock(mutex_);
    closed_ = true;
    pending_ = {};
    if (is_draft()) return close_file();
    (void)database_.execute("ROLLBACK");
    const char* reason = error.code == ENOSPC
                             ? "UPDATE info SET value = 'disk full' WHERE key = 'end_reason'"
                             : "UPDATE info SET value = 'write error' WHERE key = 'end_reason'";
    (void)database_.execute(reason);
    close_file();
    error.what += "; the run holds what was committed before and takes no more";
  }

  // An empty journal is useless; one with contents is needed to open the run.
  void close_file() {
    tables_.release();
    if (database_.handle() == nullptr) return;
    database_.close();
    database_.file()->end_writing();
  }

  // Packed beside its place and renamed, so the run is always complete, packed or not; a run that
  // cannot be packed is just as valid. Out: the new file, when there is one.
  UniqueFd pack_if_small() {
    auto pages = database_.query_int("PRAGMA page_count");
    auto page_bytes = database_.query_int("PRAGMA page_size");
    if (!pages || !page_bytes || *pages * *page_bytes > kSmallBytes) return UniqueFd();
    auto packed = PrivateFile::create(path_, PrivateFile::Existing::replace);
    UniqueFd fd(packed ? ::fcntl(packed->fd(), F_DUPFD_CLOEXEC, 0) : -1);
    if (!fd.valid() || !database_.execute(kSmallPages)) return UniqueFd();
    LentFile lent(RunFile::adopt(std::move(fd), ""));
    auto pack = Statement::prepare(database_, "VACUUM INTO ?");
    if (!pack || !pack->bind(lent.name()).run() || !packed->commit()) return UniqueFd();
    return packed->release();
  }

  Result<void> close_durably(UniqueFd packed) {
    close_file();
    int file = packed.valid() ? packed.get() : database_.file()->fd();
    if (!sync_file(file) || !sync_folder_of(path_))
      return fail_errno("{} cannot be made durable", path_);
    return {};
  }

  UniqueFd draft_;          // until the first flush
  std::string draft_path_;  // empty: no draft
  Database database_;
  std::string path_;  // empty: it is a draft
  RunTables tables_;
  model::RunInfo info_;  // flushing thread only, as are the next two
  Pending flushing_;
  std::mutex mutex_;
  Pending pending_;  // guarded by mutex_
  std::atomic<bool> filling_ = false;
  std::atomic<bool> closed_ = false;
};

}  // namespace

Result<void> Writer::check(const std::string& path, bool overwrite) {
  return check_place(path, overwrite);
}

Result<std::unique_ptr<Writer>> Writer::create(const std::string& path, const model::RunInfo& info,
                                               bool overwrite) {
  auto made = make_run_file(path, info, overwrite);
  if (!made) return std::unexpected(made.error());
  auto database = Database::open(std::move(*made), path);
  if (!database) return std::unexpected(database.error());
  auto writer = std::make_unique<FileWriter>(std::move(*database), path, info);
  if (auto started = writer->start(); !started) return std::unexpected(started.error());
  return writer;
}

std::unique_ptr<Writer> Writer::create_draft(UniqueFd file, const std::string& path,
                                             const model::RunInfo& info) {
  return std::make_unique<FileWriter>(std::move(file), path, info);
}

}  // namespace assay::run
