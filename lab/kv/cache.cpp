#include "lab/kv/cache.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include "lab/common/keep.h"

namespace lab::kv {

namespace {

constexpr size_t kChunkLines = 64;  // applied under the lock at a time
constexpr size_t kMostLineBytes = 64 * 1024;
constexpr size_t kReportsPerFile = 3;  // malformed lines reported one by one
constexpr size_t kPageBytes = 4096;

// The next field up to a comma; what follows stays in `rest`.
bool take_field(std::string_view& rest, std::string_view& field) {
  size_t comma = rest.find(',');
  if (comma == std::string_view::npos) return false;
  field = rest.substr(0, comma);
  rest.remove_prefix(comma + 1);
  return true;
}

bool to_version(std::string_view text, uint64_t& version) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Cache::Cache(const Options& options)
    : line_work_(options.number("line-work")),
      file_pause_ms_(options.number("file-pause-ms")),
      rwlock_percent_(options.fault("rwlock")),
      duplicates_(options.fault("duplicates")),
      leak_bytes_(options.fault("leak")),
      leak_limit_bytes_(options.number("leak-limit-mb") << 20) {}

[[gnu::noinline]] std::string Cache::find(const std::string& key) {
  std::shared_lock lock(table_mutex_);
  auto found = table_.find(key);
  if (found == table_.end() || found->second.deleted) return {};
  if (duplicates_ == 0) return found->second.value;
  std::string value = found->second.value;
  lock.unlock();
  return duplicate_value(value);
}

// The fault `duplicates`: the same string again and again, each in a block of its own.
[[gnu::noinline]] std::string Cache::duplicate_value(const std::string& value) const {
  std::vector<std::string> copies;
  for (long i = 0; i < duplicates_; ++i) copies.push_back(value);
  keep(copies);
  return copies.back();
}

[[gnu::noinline]] void Cache::remember_request() {
  if (leak_bytes_ == 0) return;
  std::vector<char> record(static_cast<size_t>(leak_bytes_));
  for (size_t at = 0; at < record.size(); at += kPageBytes) record[at] = 1;
  std::lock_guard lock(leak_mutex_);
  leaked_bytes_ += leak_bytes_;
  if (leaked_bytes_ <= leak_limit_bytes_) leaked_.push_back(std::move(record));
}

uint64_t Cache::keys() const {
  std::shared_lock lock(table_mutex_);
  return table_.size();
}

// Useful work per line: a checksum over it, as often as --line-work says.
[[gnu::noinline]] bool Cache::check_line(std::string_view line) const {
  uint32_t sum = 0;
  for (long i = 0; i < line_work_; ++i) {
    for (char c : line) sum = sum * 31 + static_cast<unsigned char>(c);
  }
  keep(sum);
  return !line.empty() && line.size() <= kMostLineBytes;
}

bool Cache::parse_line(std::string_view line, Change& change) const {
  if (!check_line(line)) return false;
  std::string_view operation, key, version;
  if (!take_field(line, operation) || !take_field(line, key) || key.empty()) return false;
  change.key = key;
  change.deleted = operation == "DELETE";
  if (change.deleted) return to_version(line, change.version);
  if (operation != "UPDATE" || !take_field(line, version)) return false;
  change.value = line;
  return to_version(version, change.version);
}

// The lock is held. An older version never replaces a newer one, whatever the order of files.
void Cache::apply(const Change& change) {
  Entry& entry = table_[change.key];
  if (change.version < entry.version) return;
  entry.version = change.version;
  entry.deleted = change.deleted;
  entry.value = change.value;
  entry.duplicates.assign(static_cast<size_t>(std::min(duplicates_, 16L)), change.value);
}

void Cache::apply_chunk(const std::vector<Change>& changes) {
  std::unique_lock lock(table_mutex_);
  for (const Change& change : changes) apply(change);
}

void Cache::report_malformed(const std::string& name, size_t line) {
  ++malformed_;
  if (++reported_ <= kReportsPerFile) {
    std::fprintf(stderr, "kv: %s line %zu is malformed and left out\n", name.c_str(), line);
  }
}

// Simulates a slow source of files.
[[gnu::noinline]] void Cache::wait_for_source() const {
  timespec pause{file_pause_ms_ / 1000, file_pause_ms_ % 1000 * 1'000'000};
  nanosleep(&pause, nullptr);
}

// The fault `rwlock`: waits, parses and applies while every reader waits.
[[gnu::noinline]] void Cache::load_holding_lock(const std::vector<std::string>& lines, size_t count,
                                                const std::string& name) {
  std::unique_lock lock(table_mutex_);
  if (file_pause_ms_ > 0) wait_for_source();
  Change change;
  for (size_t i = 0; i < count; ++i) {
    if (parse_line(lines[i], change)) {
      apply(change);
    } else {
      report_malformed(name, i + 1);
    }
  }
}

void Cache::load_file(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "kv: cannot read %s: %s\n", name.c_str(), std::strerror(errno));
    return;
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  reported_ = 0;
  uint64_t malformed_before = malformed_;
  size_t held = lines.size() * static_cast<size_t>(rwlock_percent_) / 100;
  if (held > 0) load_holding_lock(lines, held, name);
  if (held == 0 && file_pause_ms_ > 0) wait_for_source();
  std::vector<Change> chunk;
  for (size_t i = held; i < lines.size(); ++i) {
    Change change;
    if (parse_line(lines[i], change)) {
      chunk.push_back(std::move(change));
    } else {
      report_malformed(name, i + 1);
    }
    if (chunk.size() < kChunkLines && i + 1 < lines.size()) continue;
    apply_chunk(chunk);
    chunk.clear();
  }
  ++files_;
  if (reported_ > kReportsPerFile) {
    std::fprintf(stderr, "kv: %s: %lu malformed lines in all\n", name.c_str(),
                 static_cast<unsigned long>(malformed_ - malformed_before));
  }
}

}  // namespace lab::kv
