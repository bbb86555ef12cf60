// What the security tests ask of files, and the user whom they take for an attacker.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <sys/types.h>

namespace assay::kernel_test {

inline constexpr uid_t kNobody = 65534;

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace assay::kernel_test
