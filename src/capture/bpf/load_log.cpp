#include "capture/bpf/load_log.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace assay::capture {
namespace {

constexpr size_t kMostLogBytes = 256 * 1024;
constexpr std::string_view kBegin = "-- BEGIN PROG LOAD LOG --\n";
constexpr std::string_view kEnd = "-- END PROG LOAD LOG --";

std::string_view without_newlines(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// The name in libbpf's prefix `libbpf: prog 'on_waking': …`.
std::string_view program_in(std::string_view text) {
  constexpr std::string_view kPrefix = "prog '";
  size_t begin = text.find(kPrefix);
  if (begin == std::string_view::npos) return {};
  begin += kPrefix.size();
  return text.substr(begin, text.find('\'', begin) - begin);
}

// The last line that is neither a summary ("processed 12 insns …") nor empty: there the verifier
// says why it refuses.
std::string_view complaint_in(std::string_view log) {
  while (!log.empty()) {
    log = without_newlines(log);
    size_t start = log.rfind('\n');
    std::string_view line = start == std::string_view::npos ? log : log.substr(start + 1);
    bool is_summary = line.starts_with("processed ") || line.starts_with("verification time") ||
                      line.starts_with("stack depth");
    if (!line.empty() && !is_summary) return line;
    if (start == std::string_view::npos) return {};
    log = log.substr(0, start);
  }
  return {};
}

}  // namespace

void LoadLog::add(std::string_view text) {
  size_t begin = text.find(kBegin);
  if (begin == std::string_view::npos) {
    if (first_words_.empty()) first_words_ = without_newlines(text);
    return;
  }
  if (!log_.empty())
    return;  // libbpf tries again with more verbose logs; the first refusal is the cause
  program_ = program_in(text.substr(0, begin));
  std::string_view log = text.substr(begin + kBegin.size());
  log = log.substr(0, log.rfind(kEnd));
  if (log.size() > kMostLogBytes) log.remove_prefix(log.size() - kMostLogBytes);
  log_ = log;
}

std::string LoadLog::reason() const {
  std::string_view complaint = complaint_in(log_);
  if (complaint.empty()) return first_words_;
  return program_.empty() ? std::string(complaint) : fmt::format("{}: {}", program_, complaint);
}

Error load_error(std::string_view what, int code, const LoadLog& log) {
  std::string text = fmt::format("{}: {}", what, std::strerror(code));
  if (std::string reason = log.reason(); !reason.empty()) text += fmt::format(" ({})", reason);
  std::string remedy;
  if (code == EPERM || (code == EACCES && log.verifier_log().empty()))
    remedy = "run as root, or with CAP_BPF and CAP_PERFMON";
  return {text, remedy, code, log.verifier_log()};
}

}  // namespace assay::capture
