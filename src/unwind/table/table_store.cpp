#include "unwind/table/table_store.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <unordered_map>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace

std::string TableStore::path_of(const std::string& build_id) const {
  if (cache_dir_.empty() || !is_build_id(build_id)) return "";
  return cache_dir_ + "/unwind/" + build_id + ".v" + std::to_string(kTableVersion);
}

std::shared_ptr<const Table> TableStore::find(const std::string& build_id) const {
  if (build_id.empty()) return nullptr;
  if (auto table = registry().find(build_id)) return table;
  std::string path = path_of(build_id);
  if (path.empty()) return nullptr;
  auto table = Table::from_file(path, build_id);
  return table ? registry().keep(build_id, *table) : nullptr;
}

std::shared_ptr<const Table> TableStore::get(const std::string& build_id,
                                             const std::string& identity,
                                             const Build& build) const {
  const std::string& key = build_id.empty() ? identity : build_id;
  if (auto table = build_id.empty() ? registry().find(key) : find(build_id)) return table;
  auto bytes = build();
  if (!bytes) return nullptr;
  auto table = Table::from_bytes(std::move(*bytes));
  if (!table) return nullptr;
  if (std::string path = path_of(build_id); !path.empty()) save(**table, path);
  return registry().keep(key, *table);
}

void TableStore::save(const Table& table, const std::string& path) const {
  static std::atomic<uint64_t> counter = 0;
  std::error_code ignored;
  std::filesystem::create_directories(cache_dir_ + "/unwind", ignored);
  std::string aside = path + "." + std::to_string(::getpid()) + "." + std::to_string(++counter);
  UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return;
  bool written = ::fchmod(fd.get(), 0600) == 0 && write_all(fd.get(), table.bytes());
  if (!written || ::rename(aside.c_str(), path.c_str()) != 0) ::unlink(aside.c_str());
}

}  // namespace assay::unwind
