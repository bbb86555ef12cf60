// Result<T>: a value, or an Error that says what happened and how to fix it.
//
// Every call that can fail for reasons outside the program returns a Result and must be checked.
// Exceptions are left to programming errors and to libraries. Usage:
//
//   Result<UniqueFd> open_it(const std::string& path) {
//     int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
//     if (fd < 0) return fail_errno("cannot open {}", path);
//     return UniqueFd(fd);
//   }
//   auto fd = open_it(p);
//   if (!fd) return std::unexpected(fd.error());
#pragma once

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace assay {

struct Error {
  std::string what;    // what happened and why, one sentence without a final stop
  std::string remedy;  // the command or step that fixes it; empty when there is none
  int code = 0;        // errno of the failed call; 0 when no call failed
  // A long text that helps to find the cause, such as the log of the BPF verifier; usually empty.
  std::string detail = {};

  // The text shown to a person: what, and on a second line the remedy.
  std::string text() const { return remedy.empty() ? what : what + "\n  try: " + remedy; }
};

template <class T>
using Result = std::expected<T, Error>;

template <class... Args>
[[nodiscard]] std::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{fmt::format(format, std::forward<Args>(args)...), "", 0});
}

// As fail(), with the text of errno appended and its number kept.
template <class... Args>
[[nodiscard]] std::unexpected<Error> fail_errno(fmt::format_string<Args...> format,
                                                Args&&... args) {
  int code = errno;
  return std::unexpected(Error{
      fmt::format(format, std::forward<Args>(args)...) + ": " + std::strerror(code), "", code});
}

// An Error with the step that fixes it.
[[nodiscard]] inline std::unexpected<Error> fail_with_remedy(std::string what, std::string remedy,
                                                             int code = 0) {
  return std::unexpected(Error{std::move(what), std::move(remedy), code});
}

}  // namespace assay
