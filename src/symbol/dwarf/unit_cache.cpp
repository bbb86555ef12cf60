#include "symbol/dwarf/unit_cache.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <type_traits>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <zstd.h>

#include "base/byte_reader.h"

namespace assay::symbol {
namespace {

constexpr char kMagic[8] = {'A', 'S', 'S', 'A', 'Y', 'S', 'Y', 'M'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMaxParts = 1 << 21;
constexpr uint64_t kMaxPartBytes = 512 << 20;  // decompressed
constexpr uint64_t kMaxFileBytes = uint64_t{2} << 30;
constexpr int kCompressionLevel = 1;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t part_count;
  uint64_t fingerprint;
  uint64_t directory_checksum;  // of the build id and the directory
};
struct DirectoryEntry {
  uint64_t key, offset, size, checksum;
};

template <class T>
void append_array(std::string& out, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  uint64_t count = values.size();
  out.append(reinterpret_cast<const char*>(&count), sizeof(count));
  out.append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
}

template <class T>
bool read_array(ByteReader& cursor, std::vector<T>& out) {
  uint64_t count = cursor.u64();
  if (!cursor.ok() || count > cursor.left() / sizeof(T)) return false;
  std::string_view bytes = cursor.bytes(count * sizeof(T));
  out.resize(count);
  if (count > 0) std::memcpy(out.data(), bytes.data(), bytes.size());
  return true;
}

std::string pread_all(int fd, uint64_t offset, uint64_t size) {
  std::string out(size, '\0');
  uint64_t got = 0;
  while (got < size) {
    ssize_t n = ::pread(fd, out.data() + got, size - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<uint64_t>(n);
  }
  out.resize(got);
  return out;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool is_hex(const std::string& text) {
  return text.size() > 2 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

// Not cryptographic: it finds damage, not malice; what is read is bounds-checked besides.
uint64_t checksum_bytes(std::string_view bytes) {
  uint64_t sum = 0x9E3779B97F4A7C15ull ^ bytes.size();
  auto mix = [&sum](uint64_t word) {
    sum = (sum ^ word) * 0xff51afd7ed558ccdull;
    sum ^= sum >> 32;
  };
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    mix(word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, bytes.data() + at, bytes.size() - at);
  mix(tail);
  return sum;
}

std::string encode_unit_table(const UnitTable& table) {
  std::string out;
  append_array(out, table.rows);
  append_array(out, table.spans);
  append_array(out, table.nodes);
  append_array(out, table.ranges);
  append_array(out, table.names);
  append_array(out, table.files);
  out += table.pool;
  return out;
}

std::optional<UnitTable> decode_unit_table(std::string_view bytes) {
  ByteReader cursor(bytes);
  UnitTable out;
  bool ok = read_array(cursor, out.rows) && read_array(cursor, out.spans) &&
            read_array(cursor, out.nodes) && read_array(cursor, out.ranges) &&
            read_array(cursor, out.names) && read_array(cursor, out.files);
  if (!ok) return std::nullopt;
  out.pool = cursor.bytes(cursor.left());
  if (!out.check()) return std::nullopt;
  return out;
}

UnitCache::UnitCache(const std::string& folder, const std::string& build_id, uint64_t fingerprint)
    : build_id_(build_id), fingerprint_(fingerprint) {
  if (folder.empty() || !is_hex(build_id)) return;
  folder_ = fmt::format("{}/symbols/{}", folder, build_id.substr(0, 2));
  path_ = fmt::format("{}/{}", folder_, build_id.substr(2));
  open();
}

void UnitCache::open() {
  UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return;
  auto file_size = static_cast<uint64_t>(st.st_size);
  std::string head = pread_all(fd.get(), 0, sizeof(Header));
  Header header;
  if (head.size() < sizeof(header)) return;
  std::memcpy(&header, head.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.version != kVersion) return;
  if (header.fingerprint != fingerprint_ || header.part_count > kMaxParts) return;
  std::string directory =
      pread_all(fd.get(), sizeof(header), header.part_count * sizeof(DirectoryEntry));
  if (directory.size() != header.part_count * sizeof(DirectoryEntry)) return;
  if (checksum_bytes(build_id_ + directory) != header.directory_checksum) return;
  for (uint32_t i = 0; i < header.part_count; ++i) {
    DirectoryEntry entry;
    std::memcpy(&entry, directory.data() + i * sizeof(entry), sizeof(entry));
    if (entry.offset > file_size || entry.size > file_size - entry.offset) continue;
    parts_[entry.key] = {entry.offset, entry.size, entry.checksum, {}};
  }
  fd_ = std::move(fd);
}

std::optional<std::string> UnitCache::read(const Part& part) const {
  std::string bytes =
      part.bytes.empty() ? pread_all(fd_.get(), part.offset, part.size) : part.bytes;
  if (bytes.size() != part.size || checksum_bytes(bytes) != part.checksum) return std::nullopt;
  return bytes;
}

// Making one takes as long as a small part takes to unpack.
ZSTD_DCtx* UnitCache::unpacker() {
  if (unpacker_ == nullptr) unpacker_.reset(::ZSTD_createDCtx());
  return unpacker_.get();
}

std::optional<std::string> UnitCache::load(uint64_t key) {
  auto it = parts_.find(key);
  if (it == parts_.end()) return std::nullopt;
  auto packed = read(it->second);
  unsigned long long size = packed ? ::ZSTD_getFrameContentSize(packed->data(), packed->size()) : 0;
  if (packed && size != ZSTD_CONTENTSIZE_ERROR && size != ZSTD_CONTENTSIZE_UNKNOWN &&
      size <= kMaxPartBytes) {
    std::string out;
    size_t got = 0;
    out.resize_and_overwrite(size, [&](char* to, size_t room) {
      got = ::ZSTD_decompressDCtx(unpacker(), to, room, packed->data(), packed->size());
      return room;
    });
    if (!::ZSTD_isError(got) && got == size) return out;
  }
  parts_.erase(it);  // damaged: it will be built again
  return std::nullopt;
}

void UnitCache::add(uint64_t key, std::string_view bytes) {
  Part part;
  part.bytes.resize(::ZSTD_compressBound(bytes.size()));
  size_t size = ::ZSTD_compress(part.bytes.data(), part.bytes.size(), bytes.data(), bytes.size(),
                                kCompressionLevel);
  if (::ZSTD_isError(size)) return;
  part.bytes.resize(size);
  part.bytes.shrink_to_fit();
  part.size = size;
  part.checksum = checksum_bytes(part.bytes);
  parts_[key] = std::move(part);
  changed_ = true;
}

std::optional<std::vector<UnitRange>> UnitCache::index() {
  auto bytes = load(kIndexKey);
  if (!bytes) return std::nullopt;
  ByteReader cursor(*bytes);
  std::vector<UnitRange> out;
  if (!read_array(cursor, out)) return std::nullopt;
  return out;
}

std::optional<UnitTable> UnitCache::unit(uint32_t number) {
  auto bytes = load(number);
  return bytes ? decode_unit_table(*bytes) : std::nullopt;
}

void UnitCache::keep_index(const std::vector<UnitRange>& index) {
  std::string bytes;
  append_array(bytes, index);
  add(kIndexKey, bytes);
}

void UnitCache::keep_unit(uint32_t number, const UnitTable& table) {
  if (table.complete || !on_disk()) add(number, encode_unit_table(table));
}

void UnitCache::save() {
  if (!on_disk() || !changed_) return;
  changed_ = false;
  std::vector<DirectoryEntry> directory;
  uint64_t offset = sizeof(Header) + parts_.size() * sizeof(DirectoryEntry);
  for (const auto& [key, part] : parts_) {
    directory.push_back({key, offset, part.size, part.checksum});
    offset += part.size;
  }
  if (directory.size() > kMaxParts || offset > kMaxFileBytes) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  std::string temporary = path_ + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return;
  std::string_view raw(reinterpret_cast<const char*>(directory.data()),
                       directory.size() * sizeof(DirectoryEntry));
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.part_count = static_cast<uint32_t>(directory.size());
  header.fingerprint = fingerprint_;
  header.directory_checksum = checksum_bytes(build_id_ + std::string(raw));
  bool ok = write_all(fd.get(), {reinterpret_cast<const char*>(&header), sizeof(header)}) &&
            write_all(fd.get(), raw);
  for (const auto& entry : directory) {
    const Part& part = parts_[entry.key];
    // A part that can no longer be read is written as it was announced, so that its checksum fails.
    std::string bytes =
        part.bytes.empty() ? pread_all(fd_.get(), part.offset, part.size) : part.bytes;
    bytes.resize(part.size);
    ok = ok && write_all(fd.get(), bytes);
  }
  if (!ok || ::rename(temporary.c_str(), path_.c_str()) != 0) ::unlink(temporary.c_str());
}

}  // namespace assay::symbol
