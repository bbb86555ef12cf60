#include "run/file/run_vfs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/file_door.h"

namespace assay::run {
namespace {

constexpr std::string_view kJournalEnd = "-journal";
constexpr int kLongestName = 128;

struct Lent {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<RunFile>, std::less<>> files;  // by name
  uint64_t next = 0;
};

Lent& lent() {
  static Lent the_lent;
  return the_lent;
}

std::shared_ptr<RunFile> find_lent(std::string_view name) {
  std::lock_guard lock(lent().mutex);
  auto found = lent().files.find(name);
  return found == lent().files.end() ? nullptr : found->second;
}

thread_local int last_error = 0;

// One open file: the run itself, or the journal that it made.
struct Opened {
  std::shared_ptr<RunFile> run;
  UniqueFd journal;
  int fd() const { return journal.valid() ? journal.get() : run->fd(); }
};

struct OpenedFile {
  sqlite3_file base;
  Opened* opened;
};

// SQLite asks for errno after some failures and not after others: the file keeps it.
int failed(RunFile& run, int code) {
  last_error = errno;
  run.keep_failure(errno);
  bool full = errno == ENOSPC || errno == EDQUOT;
  return full && code == SQLITE_IOERR_WRITE ? SQLITE_FULL : code;
}

Opened& opened_of(sqlite3_file* file) {
  return *reinterpret_cast<OpenedFile*>(file)->opened;
}

int close_file(sqlite3_file* file) {
  delete reinterpret_cast<OpenedFile*>(file)->opened;
  return SQLITE_OK;
}

ssize_t read_journal(int fd, void* into, size_t size, uint64_t offset) {
  ssize_t got = -1;
  do {
    got = ::pread(fd, into, size, static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  return got;
}

int read_file(sqlite3_file* file, void* into, int amount, sqlite3_int64 at) {
  Opened& opened = opened_of(file);
  auto size = static_cast<size_t>(amount);
  auto offset = static_cast<uint64_t>(at);
  ssize_t got = opened.journal.valid() ? read_journal(opened.fd(), into, size, offset)
                                       : opened.run->read(into, size, offset);
  if (got < 0) return failed(*opened.run, SQLITE_IOERR_READ);
  if (static_cast<size_t>(got) == size) return SQLITE_OK;
  std::memset(static_cast<char*>(into) + got, 0, size - static_cast<size_t>(got));
  return SQLITE_IOERR_SHORT_READ;
}

int write_file(sqlite3_file* file, const void* from, int amount, sqlite3_int64 at) {
  Opened& opened = opened_of(file);
  if (!opened.run->is_writable()) return SQLITE_READONLY;
  for (int done = 0; done < amount;) {
    ssize_t wrote = ::pwrite(opened.fd(), static_cast<const char*>(from) + done,
                             static_cast<size_t>(amount - done), at + done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = ENOSPC;
    if (wrote <= 0) return failed(*opened.run, SQLITE_IOERR_WRITE);
    done += static_cast<int>(wrote);
  }
  return SQLITE_OK;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  Opened& opened = opened_of(file);
  if (!opened.run->is_writable()) return SQLITE_READONLY;
  return ::ftruncate(opened.fd(), size) == 0 ? SQLITE_OK
                                             : failed(*opened.run, SQLITE_IOERR_TRUNCATE);
}

int sync_file(sqlite3_file* file, int) {
  Opened& opened = opened_of(file);
  if (!opened.run->is_writable()) return SQLITE_OK;
  bool kept = opened.journal.valid() ? opened.run->sync_journal() : opened.run->sync();
  return kept ? SQLITE_OK : failed(*opened.run, SQLITE_IOERR_FSYNC);
}

int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
  Opened& opened = opened_of(file);
  struct stat status {};
  if (!opened.journal.valid()) {
    *size = static_cast<sqlite3_int64>(opened.run->bytes());
  } else if (::fstat(opened.fd(), &status) == 0) {
    *size = status.st_size;
  } else {
    return failed(*opened.run, SQLITE_IOERR_FSTAT);
  }
  return SQLITE_OK;
}

// The RunFile itself holds the locks, for as long as it lives.
int lock_file(sqlite3_file*, int) {
  return SQLITE_OK;
}
int check_reserved(sqlite3_file*, int* reserved) {
  *reserved = 0;
  return SQLITE_OK;
}

int control_file(sqlite3_file*, int, void*) {
  return SQLITE_NOTFOUND;
}
int sector_size(sqlite3_file*) {
  return 4096;
}
// What is read does not change and has no journal: SQLite looks for none.
int characteristics(sqlite3_file* file) {
  return opened_of(file).run->is_writable() ? SQLITE_IOCAP_POWERSAFE_OVERWRITE
                                            : SQLITE_IOCAP_IMMUTABLE;
}

// Version 1: no shared memory, so no write-ahead log, and no mapping.
constexpr sqlite3_io_methods kMethods{1,
                                      close_file,
                                      read_file,
                                      write_file,
                                      truncate_file,
                                      sync_file,
                                      size_of_file,
                                      lock_file,
                                      lock_file,
                                      check_reserved,
                                      control_file,
                                      sector_size,
                                      characteristics,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      nullptr};

sqlite3_vfs* usual() {
  static sqlite3_vfs* const vfs = sqlite3_vfs_find("unix");
  return vfs;
}

int open_named(std::string_view name, sqlite3_file* file, int flags, int* out_flags) {
  bool is_journal = (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0;
  if (!is_journal && (flags & SQLITE_OPEN_MAIN_DB) == 0) return SQLITE_CANTOPEN;
  if (is_journal && !name.ends_with(kJournalEnd)) return SQLITE_CANTOPEN;
  if (is_journal) name.remove_suffix(kJournalEnd.size());
  auto opened = std::make_unique<Opened>();
  opened->run = find_lent(name);
  if (!opened->run || (is_journal && !opened->run->is_writable())) return SQLITE_CANTOPEN;
  if (is_journal) {
    opened->journal = UniqueFd(opened->run->open_journal());
    if (!opened->journal.valid()) return failed(*opened->run, SQLITE_CANTOPEN);
  }
  if (out_flags != nullptr) {
    *out_flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_READONLY)) |
                 (opened->run->is_writable() ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
  }
  auto* ours = reinterpret_cast<OpenedFile*>(file);
  ours->opened = opened.release();
  ours->base.pMethods = &kMethods;
  return SQLITE_OK;
}

// For sorting what does not fit into memory.
int open_nameless(sqlite3_file* file, int flags, int* out_flags) {
  auto made = file_door().temporary();
  if (!made) {
    last_error = errno;
    return SQLITE_CANTOPEN;
  }
  auto opened = std::make_unique<Opened>();
  opened->run = RunFile::adopt(std::move(*made), "");
  if (out_flags != nullptr) *out_flags = flags;
  auto* ours = reinterpret_cast<OpenedFile*>(file);
  ours->opened = opened.release();
  ours->base.pMethods = &kMethods;
  return SQLITE_OK;
}

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if (name == nullptr) return open_nameless(file, flags, out_flags);
  return open_named(name, file, flags, out_flags);
}

int delete_file(sqlite3_vfs*, const char* name, int) {
  std::string_view text(name);
  if (!text.ends_with(kJournalEnd)) return SQLITE_IOERR_DELETE;
  text.remove_suffix(kJournalEnd.size());
  auto run = find_lent(text);
  if (!run) return SQLITE_IOERR_DELETE;
  run->remove_journal();
  return SQLITE_OK;
}

// Of all names that SQLite may think of, only a journal that we have made ourselves exists.
int access_file(sqlite3_vfs*, const char* name, int, int* result) {
  std::string_view text(name);
  std::shared_ptr<RunFile> run;
  if (text.ends_with(kJournalEnd))
    run = find_lent(text.substr(0, text.size() - kJournalEnd.size()));
  *result = run && run->has_journal() ? 1 : 0;
  return SQLITE_OK;
}

int full_name(sqlite3_vfs*, const char* name, int size, char* out) {
  size_t length = std::strlen(name);
  if (length + 1 > static_cast<size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(out, name, length + 1);
  return SQLITE_OK;
}

int randomness(sqlite3_vfs*, int size, char* out) {
  return usual()->xRandomness(usual(), size, out);
}
int sleep_for(sqlite3_vfs*, int microseconds) {
  return usual()->xSleep(usual(), microseconds);
}
int current_time(sqlite3_vfs*, double* time) {
  return usual()->xCurrentTime(usual(), time);
}
int get_last_error(sqlite3_vfs*, int, char*) {
  return last_error;
}

void register_once() {
  static sqlite3_vfs vfs{};
  static std::once_flag once;
  std::call_once(once, [] {
    sqlite3_initialize();
    vfs.iVersion = 1;
    vfs.szOsFile = std::max<int>(sizeof(OpenedFile), usual()->szOsFile);
    vfs.mxPathname = kLongestName;
    vfs.zName = kRunVfs;
    vfs.xOpen = open_file;
    vfs.xDelete = delete_file;
    vfs.xAccess = access_file;
    vfs.xFullPathname = full_name;
    vfs.xRandomness = randomness;
    vfs.xSleep = sleep_for;
    vfs.xCurrentTime = current_time;
    vfs.xGetLastError = get_last_error;
    sqlite3_vfs_register(&vfs, 0);
  });
}

}  // namespace

LentFile::LentFile(std::shared_ptr<RunFile> file) {
  register_once();
  std::lock_guard lock(lent().mutex);
  name_ = fmt::format("/run-{}", lent().next++);
  lent().files.emplace(name_, std::move(file));
}

LentFile::~LentFile() {
  std::lock_guard lock(lent().mutex);
  lent().files.erase(name_);
}

}  // namespace assay::run
