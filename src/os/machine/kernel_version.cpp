#include "os/machine/kernel_version.h"

#include <charconv>

#include <fmt/format.h>

#include "os/text_fields.h"

namespace assay::os {
namespace {

// Reads "6.1.176" from the beginning of `text`; a part that is missing is 0.
KernelVersion leading_number(std::string_view text) {
  KernelVersion found;
  for (int* part : {&found.major, &found.minor, &found.patch}) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *part);
    if (error != std::errc{}) break;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  return found;
}

}  // namespace

std::string KernelVersion::text() const {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

KernelVersion parse_kernel_version(std::string_view release, std::string_view version,
                                   std::string_view signature) {
  constexpr std::string_view kDebian = "Debian ";
  KernelVersion upstream;
  if (size_t at = version.find(kDebian); at != std::string_view::npos) {
    upstream = leading_number(version.substr(at + kDebian.size()));
  } else if (signature.starts_with("Ubuntu ")) {
    upstream = leading_number(signature.substr(signature.rfind(' ') + 1));
  }
  return upstream.major > 0 ? upstream : leading_number(release);
}

KernelVersion read_kernel_version(const std::string& proc) {
  auto text = [&](const char* name) { return read_text_file(proc + name).value_or(""); };
  return parse_kernel_version(text("/sys/kernel/osrelease"), text("/sys/kernel/version"),
                              text("/version_signature"));
}

bool user_reads_may_lock_up(const KernelVersion& version) {
  KernelVersion series{version.major, version.minor, 0};
  if (series >= KernelVersion{5, 19, 0} && series <= KernelVersion{6, 0, 0}) return true;
  if (series == KernelVersion{6, 1, 0}) return version.patch < 36;
  if (series == KernelVersion{6, 2, 0}) return true;
  return series == KernelVersion{6, 3, 0} && version.patch < 10;
}

}  // namespace assay::os
