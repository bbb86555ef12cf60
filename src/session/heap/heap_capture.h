// HeapCapture: the heap samplers inside a target's processes, and what they write.
//
// Launched programs are started with the sampler preloaded; each of their processes makes a channel
// in a directory of ours. Running ones get it by the injector; children that they fork afterwards
// have it from them, with channels of their own that we hold already: what they wrote is read also
// when they are gone. poll() reads all channels and hands their records
// to HeapEvidence; it never waits for the injector. Threads: one owner; newcomers are attached to
// on a thread beside it. Failures: a process that cannot be sampled is an Error with its reason;
// what is lost later is counted and noted in the run.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "capture/heap/heap_channel.h"
#include "capture/heap/injector.h"
#include "capture/heap/trust/kinship.h"
#include "evidence/heap_evidence.h"
#include "evidence/stacks/address_spaces.h"
#include "os/process/launch.h"
#include "session/heap/channel_directory.h"

namespace assay::session {

struct HeapSampling {
  uint64_t rate_bytes = 512 << 10;
  int64_t snapshot_ns = 0;  // 0: at the end alone
  std::string library;      // libassay_heap.so; empty: the one beside this program
  // False: another part follows forks and execs, as in a recording.
  bool alone = true;
};

// libassay_heap.so beside the running program: in its build tree or where it was installed.
Result<std::string> find_heap_library();

// A thread of a process that was held, to bring the sampler in or to take it out.
struct HeapHold {
  pid_t pid = 0;
  bool attaching = false;
  int64_t ns = 0;
};
std::string to_text(const HeapHold& hold);  // one sentence, without a final stop

class HeapCapture {
 public:
  explicit HeapCapture(HeapSampling sampling) : sampling_(std::move(sampling)) {}
  HeapCapture(const HeapCapture&) = delete;
  HeapCapture& operator=(const HeapCapture&) = delete;

  // Brings the sampler into running processes; an Error when it may go into none of them.
  // `on_wait`: called when an earlier Assay's attach must be undone first.
  Result<void> attach(const std::vector<pid_t>& pids, const std::function<void()>& on_wait);
  // What a command must be launched with.
  Result<os::LaunchExtras> prepare_launch();
  // True once a launched program has made its channel.
  bool has_channels();

  void join(const evidence::HeapEvidence::Parts& parts, evidence::AddressSpaces& spaces);
  // Reads what there is; a few dozen times a second.
  void poll(TimeNs now);
  // Ends sampling, reads what is left and notes what was lost.
  void end(TimeNs now);

  const evidence::HeapEvidence* evidence() const { return evidence_.get(); }
  // How long threads were held, by attaching and by detaching.
  const std::vector<HeapHold>& holds() const { return holds_; }
  uint64_t dropped() const;

 private:
  struct Source {
    std::unique_ptr<capture::HeapChannel> channel;
    std::string exe;
    bool attached = false;
    // The process as /proc showed it; none of a child that was gone when its channel was seen.
    std::optional<capture::ProcessFacts> facts;
    // Of a child: the process behind whose channel its own lies, and where there. 0: it is no such.
    pid_t lender = 0;
    uint32_t index = 0;
    std::optional<int64_t> clock_ahead_ns;  // of its clock, against ours
  };
  Result<void> find_library();
  capture::InjectOptions inject_options() const;
  Result<void> take_in(const capture::ProcessFacts& facts, Result<capture::Injected> injected);
  // Facts of a newcomer that may be attached to: it may do no more than a process that was asked
  // for.
  Result<capture::ProcessFacts> check_newcomer(pid_t pid) const;
  // Facts of a child that a channel tells of, or none if it is gone; an Error if it is no child.
  Result<std::optional<capture::ProcessFacts>> check_child(pid_t lender, pid_t pid) const;
  void meet_newcomers();
  bool adopt_forked(pid_t pid);
  void meet_children(TimeNs now);
  void meet_child(pid_t lender, const capture::HeapChild& child, TimeNs now);
  pid_t outer_pid(pid_t lender, pid_t pid) const;
  void part_from_children();
  bool has_ended(pid_t pid, const Source& source) const;
  void take_in_joined(bool wait);
  void detach_all();
  void find_channels(TimeNs now);
  void look_at_program(pid_t pid, Source& source, TimeNs now);
  void drain();
  void set_clock(pid_t pid, Source& source);
  void drain(pid_t pid, Source& source);
  capture::HeapChannelLosses losses() const;
  void note_losses(TimeNs now);

  HeapSampling sampling_;
  ChannelDirectory directory_;  // not made: nothing was launched
  std::map<pid_t, Source> sources_;
  capture::HeapChannelLosses past_losses_;            // of channels that were given back
  std::set<pid_t> met_;                               // newcomers that may still be on their way
  std::map<pid_t, capture::ProcessFacts> asked_for_;  // what attach() was given
  // Ended before they could be checked: known from a channel alone. No living process is taken for
  // one of them.
  std::set<pid_t> claimed_;
  std::unique_ptr<evidence::HeapEvidence> evidence_;
  std::unique_ptr<evidence::HeapEvidence::Parts> parts_;
  evidence::AddressSpaces* spaces_ = nullptr;
  std::vector<HeapHold> holds_;
  struct Joining {
    capture::ProcessFacts facts;
    std::future<Result<capture::Injected>> injected;
  };
  std::optional<Joining> joining_;  // one newcomer after another
  std::map<pid_t, Error> refused_;
  bool attaches_ = false;
  TimeNs next_look_ = 0, next_snapshot_ = 0, last_poll_ = 0;
  bool ended_ = false;
};

}  // namespace assay::session
