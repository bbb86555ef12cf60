#include "session/heap/heap_capture.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include "base/units.h"
#include "os/process/clock_offset.h"

namespace assay::session {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLookNs = 200 * kNsPerMs;  // how often new processes and programs are looked for
constexpr const char* kLibrary = "libassay_heap.so";

}  // namespace

Result<std::string> find_heap_library() {
  std::error_code failed;
  fs::path program = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const char* place : {".", "../lib/assay", "../lib64/assay", "../inject/preload"}) {
    fs::path path = program / place / kLibrary;
    if (fs::is_regular_file(path, failed)) return fs::canonical(path, failed).string();
  }
  return fail_with_remedy(
      fmt::format("{} is not where it should be, beside {}", kLibrary, program.string()),
      "install Assay whole (cmake --install), or build the target assay_heap");
}

std::string to_text(const HeapHold& hold) {
  return fmt::format("{} held one thread of process {} for {}",
                     hold.attaching ? "attaching" : "detaching", hold.pid,
                     format_duration(hold.ns));
}

Result<void> HeapCapture::find_library() {
  if (!sampling_.library.empty()) return {};
  auto found = find_heap_library();
  if (!found) return std::unexpected(found.error());
  sampling_.library = *found;
  return {};
}

capture::InjectOptions HeapCapture::inject_options() const {
  capture::InjectOptions options;
  options.library = sampling_.library;
  options.rate_bytes = sampling_.rate_bytes;
  return options;
}

Result<void> HeapCapture::take_in(const capture::ProcessFacts& facts,
                                  Result<capture::Injected> injected) {
  if (!injected) return std::unexpected(injected.error());
  pid_t pid = facts.pid;
  holds_.push_back({pid, true, injected->pause.ns});
  if (!injected->channel->ready()) {
    (void)capture::remove_sampler(pid, sampling_.library, facts.start_ticks);
    return fail("the sampler in process {} does not see what it allocates", pid);
  }
  Source& source = sources_[pid];
  source.channel = std::move(injected->channel);
  source.attached = true;
  source.facts = facts;
  source.channel->start_sampling();
  return {};
}

Result<void> HeapCapture::attach(const std::vector<pid_t>& pids,
                                 const std::function<void()>& on_wait) {
  if (auto found = find_library(); !found) return found;
  attaches_ = true;
  capture::InjectOptions options = inject_options();
  options.on_wait = on_wait;
  os::ProcFs proc;
  for (pid_t pid : pids) {
    auto facts = capture::read_process_facts(proc, pid);
    if (!facts) {
      refused_.emplace(pid, facts.error());
      continue;
    }
    asked_for_.emplace(pid, *facts);
    options.start_ticks = facts->start_ticks;
    auto attached = take_in(*facts, capture::inject_sampler(pid, options));
    if (!attached) refused_.emplace(pid, attached.error());
  }
  if (sources_.empty()) return std::unexpected(refused_.begin()->second);
  return {};
}

// The tracker knows it from the kernel or from /proc. Its process id may be another's by now, and a
// target may start programs that may do more than itself: neither is ours to touch.
Result<capture::ProcessFacts> HeapCapture::check_newcomer(pid_t pid) const {
  if (claimed_.contains(pid)) return fail("process {} is known by hearsay alone", pid);
  auto facts = capture::read_process_facts(parts_->proc, pid);
  if (!facts) return facts;
  Result<void> allowed = fail("process {} is of no process that was asked for", pid);
  for (const auto& [known, of_known] : asked_for_) {
    allowed = capture::check_rights(of_known, *facts);
    if (allowed) return facts;
  }
  return std::unexpected(allowed.error());
}

Result<std::optional<capture::ProcessFacts>> HeapCapture::check_child(pid_t lender,
                                                                      pid_t pid) const {
  const Source& source = sources_.at(lender);
  auto facts = capture::read_process_facts(parts_->proc, pid);
  if (!facts && !parts_->proc.stat(pid)) return std::nullopt;
  if (!facts) return std::unexpected(facts.error());
  if (!source.facts) return fail("process {} is not known", lender);
  if (auto fine = capture::check_rights(*source.facts, *facts); !fine)
    return std::unexpected(fine.error());
  auto descends =
      capture::check_descent(parts_->proc, *source.facts, *facts, source.channel->inode());
  if (!descends) return std::unexpected(descends.error());
  return *facts;
}

// A child that was forked from an attached process has the sampler from it.
bool HeapCapture::adopt_forked(pid_t pid) {
  auto facts = check_newcomer(pid);
  if (!facts) return false;
  auto channel = capture::open_forked_channel(parts_->proc, pid);
  if (!channel) return false;
  for (const auto& [other, source] : sources_) {
    if (source.channel->inode() == (*channel)->inode()) return false;  // its parent's
  }
  Source& source = sources_[pid];
  source.channel = std::move(*channel);
  source.attached = true;
  source.facts = *facts;
  source.channel->start_sampling();
  return true;
}

// A container's processes have numbers of their own. 0: it is not known (yet).
pid_t HeapCapture::outer_pid(pid_t lender, pid_t pid) const {
  auto status = parts_->proc.status(lender);
  bool own_pids = status && status->namespace_tids.size() > 1;
  if (!own_pids) return pid;
  for (pid_t outer : parts_->tasks.pids()) {
    auto other = parts_->proc.status(outer);
    if (other && other->namespace_tids.size() == status->namespace_tids.size() &&
        other->namespace_tids.back() == pid)
      return outer;
  }
  return 0;
}

// It may be gone already: then it is known from its channel alone, and its parent's program is its
// own. What the channel says is the target's word: a process that lives is looked at in /proc
// before anything of it is read.
void HeapCapture::meet_child(pid_t lender, const capture::HeapChild& child, TimeNs now) {
  pid_t pid = outer_pid(lender, child.pid);
  if (pid <= 0 || sources_.contains(pid)) return;
  auto facts = check_child(lender, pid);
  if (!facts) return sources_.at(lender).channel->give_back(child.index);  // it is no child
  if (!*facts && !parts_->tasks.contains(pid)) claimed_.insert(pid);
  pid_t parent = outer_pid(lender, child.parent);
  if (!parts_->tasks.contains(parent)) parent = lender;
  if (!parts_->tasks.contains(pid))
    parts_->tasks.on_fork(parent, parent, pid, pid, last_poll_ != 0 ? last_poll_ : now);
  auto channel = sources_.at(lender).channel->open_child(child.index);
  if (!parts_->tasks.contains(pid) || !channel) return;
  if (!spaces_->knows(pid)) spaces_->forked(parent, pid);
  Source& source = sources_[pid];
  source.channel = std::move(*channel);
  source.exe = sources_.at(lender).exe;
  source.attached = true;
  // Of another program by now: what it wrote before is read, and it is left alone.
  if (*facts && (*facts)->same_program(*sources_.at(lender).facts)) source.facts = *facts;
  source.lender = lender;
  source.index = child.index;
}

// Children that their parents' channels had one for.
void HeapCapture::meet_children(TimeNs now) {
  std::vector<pid_t> lenders;
  for (const auto& [pid, source] : sources_) {
    if (source.attached && source.lender == 0) lenders.push_back(pid);
  }
  for (pid_t lender : lenders) {
    for (const capture::HeapChild& child : sources_.at(lender).channel->children())
      meet_child(lender, child, now);
  }
}

// Or what it was: another program in the same process knows nothing of the channel.
bool HeapCapture::has_ended(pid_t pid, const Source& source) const {
  auto stat = parts_->proc.stat(pid);
  if (!stat || stat->state == 'Z' || stat->state == 'X') return true;
  auto exe = parts_->proc.exe(pid);
  return exe && !source.exe.empty() && *exe != source.exe;
}

// Gives back the channels of children that have ended, so that later children can use them.
void HeapCapture::part_from_children() {
  for (auto it = sources_.begin(); it != sources_.end();) {
    auto& [pid, source] = *it;
    if (source.lender == 0 || !has_ended(pid, source)) {
      ++it;
      continue;
    }
    drain(pid, source);
    past_losses_ += source.channel->losses();
    capture::HeapChannel& lender = *sources_.at(source.lender).channel;
    uint32_t index = source.index;
    it = sources_.erase(it);
    lender.give_back(index);
  }
}

// New processes of the target. A process without a sampler gets one, on a separate thread, because
// finding a place to attach may take seconds. Not when it is first seen: a child that was just
// forked may have a sampler and not have reported it yet.
void HeapCapture::meet_newcomers() {
  if (!attaches_) return;
  take_in_joined(false);
  for (pid_t pid : parts_->tasks.pids()) {
    // Assay itself may be a child of its target, started by the shell that is looked at.
    bool is_known = sources_.contains(pid) || refused_.contains(pid) || pid == getpid();
    if (is_known || (joining_ && joining_->facts.pid == pid) || adopt_forked(pid)) continue;
    if (met_.insert(pid).second || joining_ || ended_) continue;
    if (!parts_->proc.stat(pid)) continue;
    auto facts = check_newcomer(pid);
    if (!facts) {
      refused_.emplace(pid, facts.error());
      continue;
    }
    capture::InjectOptions options = inject_options();
    options.start_ticks = facts->start_ticks;
    joining_ = Joining{*facts, std::async(std::launch::async, [pid, options] {
                         return capture::inject_sampler(pid, options);
                       })};
  }
}

void HeapCapture::take_in_joined(bool wait) {
  if (!joining_) return;
  if (!wait && joining_->injected.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return;
  auto joined = take_in(joining_->facts, joining_->injected.get());
  if (!joined) refused_.emplace(joining_->facts.pid, joined.error());
  joining_.reset();
}

void HeapCapture::detach_all() {
  for (auto& [pid, source] : sources_) {
    bool is_there = source.facts && capture::is_same_process(parts_->proc, *source.facts);
    if (!source.attached || !is_there) continue;
    auto removed = capture::remove_sampler(pid, sampling_.library, source.facts->start_ticks);
    if (removed) {
      holds_.push_back({pid, false, removed->ns});
    } else {
      parts_->sink.add_note(
          {"heap",
           fmt::format("the hooks stay in process {}, switched off: {}", pid, removed.error().what),
           ""});
    }
  }
}

Result<os::LaunchExtras> HeapCapture::prepare_launch() {
  if (auto found = find_library(); !found) return std::unexpected(found.error());
  if (auto made = directory_.make(); !made) return std::unexpected(made.error());
  const char* before = std::getenv("LD_PRELOAD");
  std::string preload = sampling_.library;
  if (before != nullptr && *before != '\0') preload += std::string(":") + before;
  os::LaunchExtras extras;
  extras.environment = {"LD_PRELOAD=" + preload, "ASSAY_HEAP_CHANNEL=" + directory_.pattern(),
                        fmt::format("ASSAY_HEAP_RATE={}", sampling_.rate_bytes),
                        fmt::format("ASSAY_HEAP_RING={}", ChannelDirectory::ring_bytes())};
  return extras;
}

bool HeapCapture::has_channels() {
  find_channels(0);
  return !sources_.empty();
}

void HeapCapture::join(const evidence::HeapEvidence::Parts& parts,
                       evidence::AddressSpaces& spaces) {
  parts_ = std::make_unique<evidence::HeapEvidence::Parts>(parts);
  spaces_ = &spaces;
  evidence_ = std::make_unique<evidence::HeapEvidence>(parts);
}

void HeapCapture::find_channels(TimeNs now) {
  for (const ChannelDirectory::File& file : directory_.files()) {
    auto known = sources_.find(file.pid);
    if (known != sources_.end() && file.inode == known->second.channel->inode()) continue;
    auto channel = capture::HeapChannel::open(file.path);
    if (!channel) continue;       // being made just now
    ::unlink(file.path.c_str());  // both sides have it mapped; nothing is left behind
    // Another program in the same process has a channel of its own.
    if (known != sources_.end() && evidence_) drain(file.pid, known->second);
    Source& source = sources_[file.pid];
    source.channel = std::move(*channel);
    source.clock_ahead_ns.reset();
    if (evidence_) look_at_program(file.pid, source, now);
  }
}

// A program that replaced another (exec) has other code at the same addresses.
void HeapCapture::look_at_program(pid_t pid, Source& source, TimeNs now) {
  // Another process may have its number by now.
  bool is_there =
      source.facts ? capture::is_same_process(parts_->proc, *source.facts) : source.lender == 0;
  auto exe = parts_->proc.exe(pid);
  if (!exe || !is_there) return;
  if (!parts_->tasks.contains(pid)) parts_->tasks.resync(now);
  if (!parts_->tasks.contains(pid)) return;
  if (source.exe == *exe) return;
  bool replaced = !source.exe.empty();
  source.exe = *exe;
  if (replaced) evidence_->forget(pid);
  if (replaced && sampling_.alone) {
    auto comm = parts_->proc.comm(pid, pid);
    parts_->tasks.on_exec(pid, comm ? *comm : "", now);
    spaces_->executed(pid);
    spaces_->load(pid);
  }
  if (!spaces_->knows(pid)) spaces_->load(pid);
}

// A child that is gone already had the clock of its parent.
void HeapCapture::set_clock(pid_t pid, Source& source) {
  auto ahead = os::clock_ahead_ns(parts_->proc, pid);
  auto lender = sources_.find(source.lender);
  source.clock_ahead_ns = ahead                      ? *ahead
                          : lender != sources_.end() ? lender->second.clock_ahead_ns.value_or(0)
                                                     : 0;
  source.channel->set_clock_ahead(*source.clock_ahead_ns);
}

void HeapCapture::drain(pid_t pid, Source& source) {
  if (!source.clock_ahead_ns) set_clock(pid, source);
  source.channel->drain([&](const capture::HeapRecord& record) { evidence_->add(pid, record); });
}

void HeapCapture::drain() {
  for (auto& [pid, source] : sources_) drain(pid, source);
}

void HeapCapture::poll(TimeNs now) {
  if (now >= next_look_) {
    next_look_ = now + kLookNs;
    find_channels(now);
    part_from_children();
    meet_newcomers();
    for (auto& [pid, source] : sources_) look_at_program(pid, source, now);
  }
  meet_children(now);
  drain();
  last_poll_ = now;
  if (sampling_.snapshot_ns > 0 && now >= next_snapshot_) {
    if (next_snapshot_ != 0) evidence_->take_snapshots(now);
    next_snapshot_ = now + sampling_.snapshot_ns;
  }
}

void HeapCapture::end(TimeNs now) {
  if (ended_) return;
  ended_ = true;
  take_in_joined(true);
  meet_children(now);
  meet_newcomers();
  for (auto& [pid, source] : sources_) source.channel->stop_sampling();
  find_channels(now);
  drain();
  detach_all();
  drain();
  evidence_->take_snapshots(now);
  note_losses(now);
}

capture::HeapChannelLosses HeapCapture::losses() const {
  capture::HeapChannelLosses sum = past_losses_;
  for (const auto& [pid, source] : sources_) sum += source.channel->losses();
  return sum;
}

uint64_t HeapCapture::dropped() const {
  return losses().dropped;
}

void HeapCapture::note_losses(TimeNs now) {
  capture::HeapChannelLosses sum = losses();
  evidence::Sink& sink = parts_->sink;
  size_t without = std::ranges::count_if(directory_.files(), &ChannelDirectory::File::is_empty);
  if (without > 0) {
    sink.add_note({"heap",
                   fmt::format("{} processes were not sampled: there was no room for their "
                               "channels in {}",
                               without, directory_.place()),
                   "free some space there"});
  }
  for (const auto& [pid, error] : refused_)
    sink.add_note(
        {"heap", fmt::format("process {} was not sampled: {}", pid, error.what), error.remedy});
  for (const HeapHold& hold : holds_) {
    sink.add_fact({"heap",
                   fmt::format("{}_pause_{}_ns", hold.attaching ? "attach" : "detach", hold.pid),
                   std::to_string(hold.ns)});
  }
  if (sum.dropped > 0) {
    sink.add_loss({model::LossKind::dropped_samples, -1, now, sum.dropped});
    sink.add_note({"heap",
                   fmt::format("{} heap records found their ring full and were lost: what they "
                               "tell of is missing, and what they ended seems to live on",
                               sum.dropped),
                   fmt::format("sample less: --rate {}k", sampling_.rate_bytes * 4 / 1024)});
  }
  if (sum.dropped_live > 0) {
    sink.add_note({"heap",
                   fmt::format("{} sampled allocations were too many to be followed: they count "
                               "as allocated, and seem to live on",
                               sum.dropped_live),
                   fmt::format("sample less: --rate {}k", sampling_.rate_bytes * 4 / 1024)});
  }
  if (sum.damaged > 0) {
    sink.add_loss({model::LossKind::malformed, -1, now, sum.damaged});
    sink.add_note({"heap",
                   "the target wrote over the memory it shares with Assay: parts of its "
                   "heap records could not be read",
                   ""});
  }
}

}  // namespace assay::session
