#include "os/process/mapping_lookup.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/ioctl.h>

namespace assay::os {
namespace {

// As the kernel lays it out; the headers that we build with are older.
struct Query {
  uint64_t size = sizeof(Query);
  uint64_t flags = 0;  // none: the mapping that covers the address
  uint64_t address = 0;
  uint64_t start = 0, end = 0, permissions = 0;
  uint64_t page_bytes = 0, file_offset = 0, inode = 0;
  uint32_t dev_major = 0, dev_minor = 0;
  uint32_t name_bytes = 0;  // room, then length with its end
  uint32_t build_id_bytes = 0;
  uint64_t name_at = 0;
  uint64_t build_id_at = 0;
};
static_assert(sizeof(Query) == 104);

constexpr unsigned long kAsk = _IOWR('f', 17, Query);
constexpr uint64_t kReadable = 1, kWritable = 2, kExecutable = 4;

}  // namespace

MappingLookup::MappingLookup(const ProcFs& proc, pid_t pid)
    : proc_(proc),
      pid_(pid),
      maps_(::open(fmt::format("{}/{}/maps", proc.root(), pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

MappingLookup::Answer MappingLookup::ask(uint64_t address, MapsEntry& entry) const {
  std::array<char, 4096> name;
  Query query;
  query.address = address;
  query.name_bytes = name.size();
  query.name_at = reinterpret_cast<uint64_t>(name.data());
  if (::ioctl(maps_.get(), kAsk, &query) != 0) {
    return errno == ENOENT ? Answer::none : Answer::cannot;
  }
  entry.start = query.start;
  entry.end = query.end;
  entry.readable = (query.permissions & kReadable) != 0;
  entry.writable = (query.permissions & kWritable) != 0;
  entry.executable = (query.permissions & kExecutable) != 0;
  if (query.name_bytes > 0) entry.path.assign(name.data(), query.name_bytes - 1);
  return Answer::found;
}

std::optional<MapsEntry> MappingLookup::at(uint64_t address) {
  MapsEntry entry;
  Answer answer = all_ ? Answer::cannot : ask(address, entry);
  if (answer == Answer::found) return entry;
  if (answer == Answer::none) return std::nullopt;
  if (!all_) all_ = proc_.maps(pid_).value_or(std::vector<MapsEntry>());
  for (const MapsEntry& each : *all_) {
    if (address >= each.start && address < each.end) return each;
  }
  return std::nullopt;
}

}  // namespace assay::os
