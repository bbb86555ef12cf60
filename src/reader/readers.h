// Readers: files of targets are parsed by processes without privilege.
//
// Gives a symbolizer and a builder of unwind tables that look like the ones of symbol and unwind.
// Behind them, a few reader processes (serve.h) parse ELF, DWARF, perf maps and jitdumps. For names
// a module always goes to the same reader; all unwind tables are built by the last one. Names of
// the kernel and of the vdso come from this machine itself and are read here. A file over which a
// reader dies, or which takes too long or too much memory, is left without names, and
// module_status() says why; other modules of that reader are given to its successor. Without a
// program for readers, everything is read in this process. Threads: as Symbolizer and Unwinder
// promise.
#pragma once

#include <memory>

#include "reader/reader_process.h"
#include "symbol/symbolizer.h"
#include "unwind/unwinder.h"

namespace assay::reader {

class Readers {
 public:
  explicit Readers(const ReaderOptions& options = {});

  std::unique_ptr<symbol::Symbolizer> symbolizer(const symbol::Options& options);
  unwind::BuildTable table_builder();

  // The reader that names a module. Only where count() is not 0.
  std::shared_ptr<ReaderProcess> of(size_t module) const {
    return processes_[module % processes_.size()];
  }
  size_t count() const { return processes_.size(); }

 private:
  std::vector<std::shared_ptr<ReaderProcess>> processes_;  // empty: files are read here
};

}  // namespace assay::reader
