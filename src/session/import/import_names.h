// Names for imported frames that came with addresses only, from the files of this machine.
//
// A module is opened by its path and must have the build id that the import says, if it says one;
// kernel addresses are named only when the import shows that this kernel lay at the same place.
// What finds no name keeps none, and a note says in which modules. Frames can be named while others
// are still being read: name_ahead() hands those seen so far to a thread beside. Which frames were
// handed over when makes no difference to the names. Its own members are the thread's while it
// works; everything public is called by one thread.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/import/run_builder.h"
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
  // Begins to name the frames that came since the last call, unless it is still at it.
  void name_ahead(const formats::RunBuilder& builder);
  // Names what has no name yet. Once, when everything is read.
  void name_frames(formats::RunBuilder& builder);

 private:
  // Frames to be named, with the modules they are in.
  struct Batch {
    std::vector<model::FrameId> ids;
    std::vector<model::Frame> frames;
    std::map<model::ModuleId, model::Module> modules;
  };
  struct Named {
    model::FrameId frame;
    std::vector<model::Location> locations;
  };
  Batch take_batch(const formats::RunBuilder& builder);
  // Leaves out what cannot be named.
  void choose(Batch& batch);
  void name_slowly(Batch batch);
  void wait();
  bool can_name(const model::Module& module);
  bool open(const model::Module& module);
  bool is_this_kernel();
  void note_missing(formats::RunBuilder& builder);

  bool wanted_;
  std::unique_ptr<symbol::Symbolizer> symbolizer_;
  uint32_t next_frame_ = 0;  // to be handed over
  std::optional<KernelPlace> place_;
  std::optional<bool> this_kernel_;  // whether it lay there
  std::map<model::ModuleId, bool> usable_;
  std::map<model::ModuleId, uint64_t> unnamed_;
  std::vector<Named> named_;  // ahead, by frame
  std::future<void> ahead_;   // last, so that it is waited for first
};

}  // namespace assay::session
