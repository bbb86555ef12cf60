// KernelCache: the names of the kernel's own code, kept on disk for as long as this kernel runs.
//
// The kernel takes a tenth of a second of CPU to write out kallsyms. What lies between _stext and
// _etext stays as it is from boot to boot; modules and BPF programs come and go, so they are never
// kept. In: the whole table, once per boot. Out: that part alone, whose answers within its range()
// are those of the whole. Files are written whole and renamed into place, readable by their owner
// only, and those of earlier boots removed. Threads: none. Failures: a cache that cannot be read or
// written, or an unknown boot, is no cache.
#pragma once

#include <optional>
#include <string>

#include "symbol/kernel/kernel_symbols.h"
#include "symbol/kernel/kernel_text.h"

namespace assay::symbol {

class KernelCache {
 public:
  // `boot_id_file` names the boot; an empty `folder` is no cache.
  KernelCache(const std::string& folder, const std::string& boot_id_file);

  std::optional<KernelText> load() const;
  void keep(const KernelSymbols& whole) const;

 private:
  std::string folder_;
  std::string path_;  // empty: no cache
};

}  // namespace assay::symbol
