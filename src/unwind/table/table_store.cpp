#include "unwind/table/table_store.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <unordered_map>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_door.h"
#include "base/unique_fd.h"

namespace assay::unwind {

namespace {

// Tables in use anywhere in this process.
struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string, std::weak_ptr<const Table>> tables;

  std::shared_ptr<const Table> find(const std::string& key) {
    std::lock_guard lock(mutex);
    auto it = tables.find(key);
    return it == tables.end() ? nullptr : it->second.lock();
  }
  // The first one kept under a key stays; the others are given it.
  std::shared_ptr<const Table> keep(const std::string& key, std::shared_ptr<const Table> table) {
    std::lock_guard lock(mutex);
    std::erase_if(tables, [](const auto& item) { return item.second.expired(); });
    auto& slot = tables[key];
    if (auto earlier = slot.lock()) return earlier;
    slot = table;
    return table;
  }
};

Registry& registry() {
  static Registry the_registry;
  return the_registry;
}

bool is_build_id(const std::string& text) {
  return text.size() >= 2 && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

// Whether only the caller (and root) can write into the folder.
bool is_private(const std::string& folder) {
  UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0) return false;
  return st.st_uid == ::geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int64_t in_ns(const timespec& time) {
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace

std::optional<FileIdentity> FileIdentity::of(int fd, const std::string& build_id) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return std::nullopt;
  return FileIdentity{build_id,          st.st_dev,
                      st.st_ino,         static_cast<uint64_t>(st.st_size),
                      in_ns(st.st_mtim), in_ns(st.st_ctim)};
}

std::string FileIdentity::text() const {
  return fmt::format("{}-{:x}-{:x}-{:x}-{:x}-{:x}", build_id, device, inode, bytes, modified_ns,
                     changed_ns);
}

TableStore::TableStore(const std::string& cache_dir) {
  if (cache_dir.empty()) return;
  std::error_code ignored;
  std::string folder = cache_dir + "/unwind";
  if (asks_for_files()) {  // who started us looks at the folder, for each entry
    folder_ = folder;
    return;
  }
  std::filesystem::create_directories(cache_dir, ignored);
  ::mkdir(folder.c_str(), 0700);
  if (is_private(folder)) folder_ = folder;
}

std::string TableStore::path_of(const FileIdentity& file) const {
  if (folder_.empty() || !is_build_id(file.build_id)) return "";
  return fmt::format("{}/{}.v{}", folder_, file.text(), kTableVersion);
}

std::shared_ptr<const Table> TableStore::get(const FileIdentity& file, const Build& build) const {
  std::string key = file.text(), path = path_of(file);
  if (auto table = registry().find(key)) return table;
  if (!path.empty()) {
    if (auto kept = read(path, file.build_id)) return registry().keep(key, kept);
  }
  auto bytes = build();
  if (!bytes) return nullptr;
  auto table = Table::from_bytes(std::move(*bytes));
  if (!table) return nullptr;
  if (!path.empty() && !asks_for_files()) save(**table, path);
  return registry().keep(key, *table);
}

std::shared_ptr<const Table> TableStore::read(const std::string& path,
                                              const std::string& build_id) const {
  auto found = file_door().open(path, Purpose::cache);
  if (!found) return nullptr;
  auto kept = Table::from_file(std::move(found->fd), path, build_id);
  return kept ? *kept : nullptr;
}

void TableStore::save(const Table& table, const std::string& path) const {
  static std::atomic<uint64_t> counter = 0;
  std::string aside = path + "." + std::to_string(::getpid()) + "." + std::to_string(++counter);
  UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return;
  bool written = write_all(fd.get(), table.bytes());
  if (!written || ::rename(aside.c_str(), path.c_str()) != 0) ::unlink(aside.c_str());
}

}  // namespace assay::unwind
