#include "symbol/demangle.h"

#include <cstdlib>
#include <memory>

#include <cxxabi.h>

namespace assay::symbol {
namespace {

// The runtime's demangler itself gives up at 1024 bytes.
constexpr size_t kMaxCppBytes = 1024;

}  // namespace

std::string demangle_cpp(std::string_view name) {
  if (!name.starts_with("_Z") || name.size() > kMaxCppBytes) return "";
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  return text ? std::string(text.get()) : "";
}

std::string demangle(std::string_view name) {
  if (name.size() < 3 || name[0] != '_') return std::string(name);
  std::string out;
  if (name[1] == 'Z') {
    out = demangle_rust_legacy(name);
    if (out.empty()) out = demangle_cpp(name);
  } else if (name[1] == 'R') {
    out = demangle_rust_v0(name);
  } else if (name[1] == 'D') {
    out = demangle_d(name);
  }
  return out.empty() ? std::string(name) : out;
}

}  // namespace assay::symbol
