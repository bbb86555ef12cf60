#include "symbol/demangle.h"
namespace assay::symbol {
std::string demangle_rust_v0(std::string_view) {
  return "";
}
}  // namespace assay::symbol
