#include "os/text_fields.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace assay::os {
namespace {

template <class T>
std::optional<T> parse_number(std::string_view text, int base) {
  text = trim(text);
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

}  // namespace

std::optional<std::string> read_text_file(const std::string& path, size_t limit_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return {};
  std::string content;
  char buffer[8192];
  while (content.size() < limit_bytes) {
    size_t want = std::min(sizeof buffer, limit_bytes - content.size());
    ssize_t got = ::read(fd.get(), buffer, want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    if (got == 0) break;
    content.append(buffer, static_cast<size_t>(got));
  }
  return content;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    size_t begin = text.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<uint64_t> parse_u64(std::string_view text) {
  return parse_number<uint64_t>(text, 10);
}
std::optional<int64_t> parse_i64(std::string_view text) {
  return parse_number<int64_t>(text, 10);
}
std::optional<uint64_t> parse_hex(std::string_view text) {
  return parse_number<uint64_t>(text, 16);
}

std::string_view field_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    size_t begin = line.find_first_not_of(" \t");
    if (begin != std::string_view::npos && line[begin] == ':') return trim(line.substr(begin + 1));
    if (begin != std::string_view::npos && begin > 0) return trim(line);
  }
  return {};
}

std::optional<uint32_t> count_cpu_list(std::string_view text) {
  constexpr uint64_t kMaxCpus = 1 << 20;
  text = trim(text);
  if (text.empty()) return {};
  uint64_t count = 0;
  for (std::string_view part : split(text, ',')) {
    size_t dash = part.find('-');
    auto first = parse_u64(part.substr(0, dash));
    auto last = dash == std::string_view::npos ? first : parse_u64(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMaxCpus) return {};
    count += *last - *first + 1;
  }
  if (count > kMaxCpus) return {};
  return static_cast<uint32_t>(count);
}

}  // namespace assay::os
