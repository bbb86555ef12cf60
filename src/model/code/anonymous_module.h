// The module of a process's code that lies in no file: how it is called, and whose it is.
//
// Such modules have the kind ModuleKind::anonymous, and that kind is what code decides by; the path
// is for people and for finding the process again. Pure functions.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace assay::model {

inline constexpr std::string_view kAnonymousPrefix = "[anon ";

// "[anon PID]".
inline std::string anonymous_module_path(pid_t pid) {
  return std::string(kAnonymousPrefix) + std::to_string(pid) + "]";
}

// The process of such a path; nullopt when it names none.
inline std::optional<pid_t> pid_of_anonymous_module(std::string_view path) {
  if (!path.starts_with(kAnonymousPrefix)) return std::nullopt;
  path.remove_prefix(kAnonymousPrefix.size());
  pid_t pid = 0;
  auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), pid);
  bool whole = error == std::errc() && std::string_view(end, path.data() + path.size()) == "]";
  return whole && pid > 0 ? std::optional(pid) : std::nullopt;
}

}  // namespace assay::model
