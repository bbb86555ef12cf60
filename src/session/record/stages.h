// Stages: from an address in a process to a named frame in the sink, the same for every
// capture.
//
// Owns the parts that this needs: which processes belong to the target (tasks), their mappings
// (spaces), the walking and keeping of stacks (unwinder, stacks), and names (symbolizer, namer). A
// new mapping goes to each of these parts, and then to `mapped`, for the parts that a capture adds.
// Threads: names are found on the namer's own thread; everything else is called by the thread that
// reads events.
// Failures: none here; what cannot be read has no name.
#pragma once

#include <functional>
#include <initializer_list>

#include "evidence/hot_source.h"
#include "evidence/process_register.h"
#include "evidence/sink.h"
#include "evidence/stacks/address_spaces.h"
#include "evidence/stacks/frame_namer.h"
#include "evidence/stacks/stack_builder.h"
#include "os/process/procfs.h"
#include "reader/readers.h"
#include "reader/remote_binaries.h"
#include "session/lifecycle/capture_options.h"
#include "session/record/tracked_tasks.h"
#include "symbol/symbolizer.h"
#include "unwind/unwinder.h"

namespace assay::session {

using Mapped = std::function<void(pid_t pid, const model::Mapping&, const model::Module&)>;

class Stages {
  // First, since the stages below use them from their construction on.
  evidence::Sink& sink_;
  Mapped mapped_;

 public:
  // `unwind_cache`: where unwind tables are kept; empty where nothing is unwound here.
  Stages(const CaptureOptions& options, const std::string& unwind_cache, const os::ProcFs& proc,
         evidence::Sink& sink, Mapped mapped = nullptr);
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;

  // The rest of the names; with `keep_source` also the text of the hottest lines of each, from
  // files as the target sees them while it lives.
  void finish(bool keep_source, std::initializer_list<const evidence::HotSource*> hot);

  // First: processes and address spaces ask it. Null: program files are parsed here.
  std::unique_ptr<reader::RemoteBinaries> binaries;
  // In the order of the path of a sample; destroyed in reverse.
  evidence::ProcessRegister processes;
  TrackedTasks tasks;
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
