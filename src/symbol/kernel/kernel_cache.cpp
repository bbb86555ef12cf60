#include "symbol/kernel/kernel_cache.h"

#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file_door.h"
#include "base/unique_fd.h"

namespace assay::symbol {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "kernel-", kSuffix = ".symbols";

// "1b4e28ba-2fa1-11d2-883f-0016d3cca427", or nothing.
std::string boot_id(const std::string& file) {
  char text[80] = {};
  auto found = file_door().open(file, Purpose::kernel_symbols);
  ssize_t size = found ? ::read(found->fd.get(), text, sizeof text) : 0;
  std::string id(text, static_cast<size_t>(std::max<ssize_t>(0, size)));
  id.resize(std::min(id.find('\n'), id.size()));
  bool plain = id.find_first_not_of("0123456789abcdef-") == std::string::npos;
  return plain && id.size() <= 64 ? id : "";
}

bool write_file(const std::string& path, const std::string& text) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return false;
  std::string_view rest = text;
  while (!rest.empty()) {
    ssize_t n = ::write(fd.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    rest.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

KernelCache::KernelCache(const std::string& folder, const std::string& boot_id_file)
    : folder_(folder) {
  if (folder.empty()) return;
  std::string boot = boot_id(boot_id_file);
  if (!boot.empty()) path_ = fmt::format("{}/{}{}{}", folder, kPrefix, boot, kSuffix);
}

std::optional<KernelText> KernelCache::load() const {
  return path_.empty() ? std::nullopt : KernelText::open(path_);
}

void KernelCache::keep(const KernelSymbols& whole) const {
  if (path_.empty() || asks_for_files() || !whole.core_range()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  std::string draft = fmt::format("{}.{}", path_, ::getpid());
  if (!write_file(draft, whole.core_text()) || ::rename(draft.c_str(), path_.c_str()) != 0) {
    ::unlink(draft.c_str());
    return;
  }
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    std::string name = entry.path().filename().string();
    bool ours = name.starts_with(kPrefix) && name.ends_with(kSuffix);
    if (ours && entry.path() != fs::path(path_)) fs::remove(entry.path(), ignored);
  }
}

}  // namespace assay::symbol
