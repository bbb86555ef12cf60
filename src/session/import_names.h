// Names for imported frames that came with addresses only, from the files of this machine.
//
// A module is opened by its path and must have the build id that the import says, if it says one;
// kernel addresses are named only when the import shows that this kernel lay at the same place.
// What finds no name keeps none, and a note says in which modules. The kernel's names are read by a
// thread of their own from the first kernel frame on, since they take longer than most files;
// everything else happens in the caller's thread and, in name_frames(), the symbolizer's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "formats/run_builder.h"
#include "symbol/symbolizer.h"

namespace assay::session {

// Where the imported kernel had one of its symbols ("_text").
struct KernelPlace {
  std::string symbol;
  uint64_t address = 0;
  bool operator==(const KernelPlace&) const = default;
};

class ImportNames {
 public:
  // Without `wanted` nothing is read and no frame is named.
  ImportNames(bool wanted, const std::string& cache_dir);

  // Of several files' places the last counts.
  void set_kernel_place(const KernelPlace& place);
  // A frame of the kernel was seen: its names will be wanted.
  void expect_kernel(const model::Module& kernel);
  // Names what has no name yet. Once, when everything is read.
  void name_frames(formats::RunBuilder& builder);

 private:
  bool can_name(const formats::RunBuilder& builder, model::ModuleId id);
  bool open(const model::Module& module);
  bool is_this_kernel();
  void note_missing(formats::RunBuilder& builder);

  bool wanted_;
  std::unique_ptr<symbol::Symbolizer> symbolizer_;
  std::optional<KernelPlace> place_;
  std::optional<bool> this_kernel_;  // whether it lay there; the reader's until it is joined
  std::jthread kernel_reader_;
  std::map<model::ModuleId, bool> usable_;
  std::map<model::ModuleId, uint64_t> unnamed_;
};

}  // namespace assay::session
