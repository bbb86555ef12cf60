#include "os/process/clock_offset.h"

#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/clock.h"

namespace assay::os {
namespace {

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

// The line "monotonic SECONDS NANOSECONDS".
int64_t monotonic_of(std::string_view text) {
  constexpr std::string_view kName = "monotonic";
  if (!text.starts_with(kName)) return 0;
  text = text.substr(kName.size(), text.find('\n') - kName.size());
  int64_t parts[2]{}, whole = 0;
  for (int64_t& part : parts) {
    std::string_view word = next_word(text);
    if (std::from_chars(word.data(), word.data() + word.size(), part).ec != std::errc()) return 0;
  }
  if (__builtin_mul_overflow(parts[0], kNsPerSecond, &whole) ||
      __builtin_add_overflow(whole, parts[1], &whole))
    return 0;
  return whole;
}

// The file tells of the namespace that children will be in; mostly the process is in it itself.
Result<int64_t> offset_of(const ProcFs& proc, const std::string& process) {
  auto text = proc.read(process + "/timens_offsets");
  if (!text) {
    if (text.error().code == ENOENT && proc.read(process + "/stat")) return 0;
    return std::unexpected(text.error());
  }
  std::error_code failed;
  std::string folder = proc.root() + "/" + process + "/ns/";
  auto own = std::filesystem::read_symlink(folder + "time", failed);
  auto next = std::filesystem::read_symlink(folder + "time_for_children", failed);
  return own == next ? monotonic_of(*text) : 0;
}

}  // namespace

Result<int64_t> clock_ahead_ns(const ProcFs& proc, pid_t pid) {
  auto its = offset_of(proc, std::to_string(pid));
  if (!its) return its;
  auto ours = offset_of(proc, "self");
  return *its - (ours ? *ours : 0);
}

}  // namespace assay::os
