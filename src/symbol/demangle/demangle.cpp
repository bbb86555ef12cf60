#include "symbol/demangle/demangle.h"

#include <cstdlib>
#include <memory>

#include <cxxabi.h>

#include "symbol/demangle/itanium_parser.h"

namespace assay::symbol {
namespace {

// The runtime's demangler itself gives up at 1024 bytes.
constexpr size_t kMaxRuntimeBytes = 1024;
constexpr size_t kMaxCppBytes = 64 << 10;
// A name that our parser finds this small is small for the runtime's demangler too: they differ in
// how they write packs, by at most the number of their elements.
constexpr size_t kSafeBytes = 16 << 10;

std::string demangle_by_runtime(std::string_view name) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  return text ? std::string(text.get()) : "";
}

}  // namespace

std::string demangle_cpp(std::string_view name) {
  if (!name.starts_with("_Z") || name.size() > kMaxCppBytes) return "";
  ItaniumParser parser(name);
  std::string own = parser.run();
  // What our parser refuses stays mangled: on such names the runtime's demangler may try for hours.
  bool own_only = own.empty() || name.size() > kMaxRuntimeBytes || own.size() > kSafeBytes ||
                  parser.has_unknown();
  if (own_only) return own;
  std::string text = demangle_by_runtime(name);
  return text.empty() ? own : text;
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
