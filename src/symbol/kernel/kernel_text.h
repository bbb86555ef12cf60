// KernelText: a file in kallsyms' form, sorted by address, searched where it lies.
//
// Reading it into a table would cost more than all the questions that a run has for it: a search
// looks at a few dozen lines. In: what KernelCache keeps, the kernel's own code from _stext to
// _etext. Out: the symbol that holds an absolute address, as KernelSymbols answers. Symbols are
// valid as long as the KernelText. Threads: const after open(). Failures: a file that cannot be
// mapped, or does not begin with _stext and end with _etext, is none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "symbol/kernel/kernel_symbols.h"

namespace assay::symbol {

class KernelText {
 public:
  static std::optional<KernelText> open(const std::string& path);
  KernelText(KernelText&& other) noexcept;
  KernelText& operator=(KernelText&& other) noexcept;
  ~KernelText();

  KernelSymbols::Range range() const { return range_; }
  // Of addresses in range().
  bool find_code(uint64_t address, KernelSymbol& out) const;

 private:
  struct Line {
    size_t begin = 0, end = 0;  // without its line end
    uint64_t address = 0;
    std::string_view name;
  };
  KernelText() = default;
  // The line that holds the byte at `at`; nothing when it is no symbol.
  std::optional<Line> line_at(size_t at) const;
  // The first of the lines that have its address.
  Line first_of(Line line) const;
  bool find_range();
  void unmap();

  std::string_view text_;  // mapped
  KernelSymbols::Range range_;
};

}  // namespace assay::symbol
