#include "inject/inproc/lifecycle/process_mark.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include "inject/inproc/write/profile.h"

extern "C" void* __libc_stack_end;  // the dynamic linker's: sp at the program's first instruction

namespace assay::inproc {
namespace {

constexpr const char* kName = "ASSAY_PID";

// The kernel puts the environment that a program is executed with above its first stack frame and
// below the program's name; variables that are set later lie elsewhere.
bool is_from_before(const char* text) {
  auto at = reinterpret_cast<uintptr_t>(text);
  return at > reinterpret_cast<uintptr_t>(__libc_stack_end) && at < getauxval(AT_EXECFN);
}

uint64_t draw_secret() {
  uint64_t secret = 0;
  if (getrandom(&secret, sizeof secret, GRND_NONBLOCK) == sizeof secret) return secret;
  return static_cast<uint64_t>(monotonic_ns()) * 0x9e3779b97f4a7c15;
}

bool is_digit(char c, int base) {
  return (c >= '0' && c <= '9') || (base == 16 && c >= 'a' && c <= 'f');
}

// The digits up to the next point, which is consumed too. Empty: there are none, or too many.
std::string_view take_digits(std::string_view& text, int base) {
  size_t count = 0;
  while (count < text.size() && is_digit(text[count], base)) ++count;
  std::string_view digits(text.data(), count <= 16 ? count : 0);
  bool is_point = count < text.size() && text[count] == '.';
  text = {text.data() + count + is_point, text.size() - count - is_point};
  return digits;
}

Lineage lineage_of(const char* mark, const MarkParts& parts) {
  if (parts.pid != getpid()) return Lineage::started;
  return is_from_before(mark) ? Lineage::executed : Lineage::repeated;
}

}  // namespace

bool parse_mark(std::string_view text, MarkParts& out) {
  std::string_view pid = take_digits(text, 10), secret = take_digits(text, 16),
                   inherited = take_digits(text, 10);
  if (pid.empty() || pid.size() > 9 || secret.size() != 16 || inherited.size() != 1 ||
      !text.empty())
    return false;
  out.pid = std::atoi(pid.data());
  out.is_inherited = inherited[0] != '0';
  std::memcpy(out.secret, secret.data(), secret.size());
  out.secret[secret.size()] = 0;
  return true;
}

ProcessMark take_process_mark() {
  ProcessMark mark;
  MarkParts parts;
  const char* before = getenv(kName);
  if (before != nullptr && parse_mark(before, parts)) {
    mark.lineage = lineage_of(before, parts);
    std::strcpy(mark.secret, parts.secret);
  } else {
    snprintf(mark.secret, sizeof mark.secret, "%016lx", draw_secret());
  }
  if (mark.lineage == Lineage::repeated) return mark;
  mark.is_inherited =
      mark.lineage == Lineage::started || (mark.lineage == Lineage::executed && parts.is_inherited);
  char own[64];
  snprintf(own, sizeof own, "%d.%s.%d", getpid(), mark.secret, mark.is_inherited);
  setenv(kName, own, 1);
  return mark;
}

}  // namespace assay::inproc
