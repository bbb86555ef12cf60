// KernelSymbols: the kernel's own symbol table, /proc/kallsyms, modules and BPF programs included.
//
// In: the text of kallsyms. Out: the symbol that holds an absolute address. Sizes are not in the
// text: a symbol ends where the next begins. Threads: const after construction.
// Failures: addresses hidden by kptr_restrict leave the table empty and problem() says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbol {

// No symbol of kallsyms has a size, so an address far behind the last one must not get its name.
inline constexpr uint64_t kMaxKernelSymbolBytes = 4 << 20;

struct KernelSymbol {
  std::string_view name;
  std::string_view module;  // "nf_tables", "bpf"; empty for the kernel itself
  uint64_t start = 0;
};

class KernelSymbols {
 public:
  static KernelSymbols load(const std::string& path);
  static KernelSymbols parse(std::string text);

  bool find_code(uint64_t address, KernelSymbol& out) const { return find(code_, address, out); }
  bool find_data(uint64_t address, KernelSymbol& out) const { return find(data_, address, out); }
  size_t size() const { return code_.size() + data_.size(); }
  const std::string& problem() const { return problem_; }

  // The kernel's own code, from _stext to _etext; nothing when the table has not both.
  struct Range {
    uint64_t begin = 0, end = 0;
    bool has(uint64_t address) const { return begin <= address && address < end; }
  };
  std::optional<Range> core_range() const;
  // Its symbols, in kallsyms' form and by address: KernelText answers from it as this table does
  // within the range.
  std::string core_text() const;

 private:
  struct Entry {
    uint64_t start;
    uint32_t name_at, name_size;      // into text_
    uint32_t module_at, module_size;  // size 0: the kernel itself
  };
  bool find(const std::vector<Entry>& table, uint64_t address, KernelSymbol& out) const;
  void add_line(size_t begin, size_t end);

  std::string text_;
  std::vector<Entry> code_, data_;
  std::string problem_;
};

}  // namespace assay::symbol
