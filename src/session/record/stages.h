// Stages: from an address in a process to a named frame in the run file, the same for every
// capture.
//
// Owns who belongs to the target (tracker), what is mapped where (spaces), how stacks are walked
// and kept (unwinder, stacks) and their names (symbolizer, namer). A mapping that is seen for the
// first time goes to all who must know of it, and then to `mapped`, for what a capture has besides.
// Threads: names are found on the namer's own; all else is called by whoever reads events.
// Failures: none here; what cannot be read has no name.
#pragma once

#include <functional>
#include <initializer_list>

#include "os/process/procfs.h"
#include "run/writer.h"
#include "evidence/stacks/address_spaces.h"
#include "reader/readers.h"
#include "session/record/capture_options.h"
#include "evidence/stacks/frame_namer.h"
#include "evidence/hot_source.h"
#include "evidence/process_register.h"
#include "evidence/stacks/stack_builder.h"
#include "symbol/symbolizer.h"
#include "target/tracker.h"
#include "unwind/unwinder.h"

namespace assay::session {

using Mapped = std::function<void(pid_t pid, const model::Mapping&, const model::Module&)>;

class Stages {
  // First, since the stages below use them from their construction on.
  run::Writer& writer_;
  Mapped mapped_;

 public:
  // `unwind_cache`: where unwind tables are kept; empty where nothing is unwound here.
  Stages(const CaptureOptions& options, const std::string& unwind_cache, const os::ProcFs& proc,
         run::Writer& writer, Mapped mapped = nullptr);
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;

  // The text of the hottest lines of each, from files as the target sees them while it lives.
  void keep_source(std::initializer_list<const evidence::HotSource*> hot);

  // In the order of the path of a sample; destroyed in reverse.
  evidence::ProcessRegister processes;
  target::Tracker tracker;
  reader::Readers readers;  // what parses the target's files
  std::unique_ptr<symbol::Symbolizer> symbolizer;
  std::unique_ptr<unwind::Unwinder> unwinder;
  evidence::FrameNamer namer;
  evidence::AddressSpaces spaces;
  evidence::StackBuilder stacks;

 private:
  void announce(pid_t pid, const model::Mapping& mapping, const model::Module& module, bool is_new);
};

}  // namespace assay::session
