// Any text as a mangled name; the first byte chooses the language, so that each gets its share.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/display_name.h"
#include "symbol/demangle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static constexpr const char* kPrefixes[] = {"_Z", "_ZN", "_R", "_D"};
  std::string name = kPrefixes[data[0] % 4] + std::string(reinterpret_cast<const char*>(data + 1), size - 1);
  std::string shown = assay::symbol::demangle(name);
  (void)assay::model::fold_name(shown);
  (void)assay::model::short_name(shown);
  return 0;
}
