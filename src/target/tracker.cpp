#include "target/tracker.h"

#include <algorithm>

#include "target/pools.h"
#include "target/process_table.h"

namespace assay::target {
namespace {

// A tid that exited this recently is still the same thread; the kernel does not reuse one that fast
// unless its whole number space wraps, and then a fork record announces it.
constexpr TimeNs kBurialNs = kNsPerSecond;

}  // namespace

void Tracker::adopt(const ResolvedTarget& target, TimeNs time) {
  std::vector<std::string> root_exes;
  for (size_t index = 0; index < target.root_count; ++index) {
    root_exes.push_back(target.processes[index].exe);
  }
  std::vector<std::string> root_roles = roles_.assign_roots(root_exes);
  for (size_t index = 0; index < target.processes.size(); ++index) {
    const ResolvedProcess& found = target.processes[index];
    bool on_top = index < target.root_count;
    model::Process record;
    record.pid = found.pid;
    record.parent_pid = found.parent;
    record.exe = found.exe;
    record.comm = found.comm;
    record.cmdline = found.cmdline;
    record.cgroup = found.cgroup;
    record.role = on_top ? root_roles[index] : roles_.assign(found.exe);
    record.begin_ns = time;
    LiveProcess& process = begin_process(std::move(record), on_top);
    for (const ResolvedThread& thread : found.threads) {
      begin_thread(process, thread.tid, thread.name, time);
    }
    // Threads that could not be listed are adopted by their records; the main one is certain.
    if (!process.tids.contains(found.pid)) begin_thread(process, found.pid, found.comm, time);
  }
}

void Tracker::adopt_launched(pid_t pid, const std::string& comm, TimeNs time) {
  model::Process record;
  record.pid = pid;
  if (auto stat = proc_.stat(pid)) record.parent_pid = stat->parent;
  record.comm = comm;
  record.role = roles_.assign_roots({""}).front();
  record.begin_ns = time;
  LiveProcess& process = begin_process(std::move(record), true);
  process.awaits_exec = true;
  begin_thread(process, pid, comm, time);
}

Tracker::LiveProcess& Tracker::begin_process(model::Process record, bool on_top) {
  record.id = model::ProcessId{next_process_++};
  sink_.put_process(record);
  LiveProcess& process = processes_[record.pid];
  process = LiveProcess{std::move(record), {}, on_top, false};
  return process;
}

void Tracker::begin_thread(LiveProcess& process, pid_t tid, std::string name, TimeNs time) {
  LiveThread thread;
  thread.record.id = model::ThreadId{next_thread_++};
  thread.record.process = process.record.id;
  thread.record.tid = tid;
  thread.record.begin_ns = time;
  thread.task = {thread.record.id, process.record.id, process.record.pid};
  process.tids.insert(tid);
  LiveThread& kept = threads_[tid] = std::move(thread);
  rename(kept, std::move(name));
}

void Tracker::rename(LiveThread& thread, std::string name) {
  bool main_thread = thread.record.tid == thread.task.pid;
  thread.record.pool = main_thread ? name : pool_name(name);
  thread.record.name = std::move(name);
  sink_.put_thread(thread.record);
}

void Tracker::end_thread(pid_t tid, TimeNs time) {
  auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  LiveThread thread = std::move(found->second);
  threads_.erase(found);
  burials_[static_cast<size_t>(tid) % burials_.size()] = {tid, time};
  thread.record.end_ns = std::max(time, thread.record.begin_ns);
  sink_.put_thread(thread.record);
  auto owner = processes_.find(thread.task.pid);
  if (owner == processes_.end()) return;
  owner->second.tids.erase(tid);
  if (!owner->second.tids.empty()) return;
  owner->second.record.end_ns = std::max(time, owner->second.record.begin_ns);
  sink_.put_process(owner->second.record);
  processes_.erase(owner);
}

// All threads and the process end; the thread that called exec continues in a new image.
void Tracker::end_image(LiveProcess& process, TimeNs time) {
  std::vector<pid_t> tids(process.tids.begin(), process.tids.end());
  std::ranges::sort(tids);
  for (pid_t tid : tids)
    end_thread(tid, time);  // the last one ends the process and `process` with it
}

// True when `tid` of process `pid` was adopted from /proc at a later time than this record's: the
// record is about the same thread, which therefore began earlier than assumed.
bool Tracker::known_since(pid_t tid, pid_t pid, TimeNs time) {
  auto found = threads_.find(tid);
  return found != threads_.end() && found->second.task.pid == pid &&
         found->second.record.begin_ns >= time;
}

void Tracker::on_fork(pid_t parent_pid, pid_t parent_tid, pid_t child_pid, pid_t child_tid,
                      TimeNs time) {
  if (known_since(child_tid, child_pid, time)) {
    LiveThread& thread = threads_.at(child_tid);
    thread.record.begin_ns = time;
    sink_.put_thread(thread.record);
    return;
  }
  end_thread(child_tid, time);  // a reused tid whose exit was lost
  auto parent = processes_.find(parent_pid);
  if (parent == processes_.end()) return;
  if (child_pid != parent_pid) {
    if (include_children_) fork_process(parent->second, parent_tid, child_pid, time);
    return;
  }
  const model::Thread* maker = thread(parent_tid);
  begin_thread(parent->second, child_tid, maker ? maker->name : parent->second.record.comm, time);
}

void Tracker::fork_process(const LiveProcess& parent, pid_t parent_tid, pid_t child, TimeNs time) {
  if (auto former = processes_.find(child); former != processes_.end()) {
    end_image(former->second, time);  // a reused pid whose exit was lost
  }
  const model::Thread* maker = thread(parent_tid);
  std::string name = maker ? maker->name : parent.record.comm;
  model::Process record = parent.record;  // until it execs, it is a copy of its parent
  record.pid = child;
  record.parent_pid = parent.record.pid;
  record.comm = name;
  record.role = roles_.assign(record.exe);
  record.begin_ns = time;
  record.end_ns = model::kStillRunning;
  LiveProcess& process = begin_process(std::move(record), false);
  begin_thread(process, child, std::move(name), time);
}

void Tracker::read_image(model::Process& record) {
  constexpr std::string_view deleted = " (deleted)";
  record.exe.clear();
  record.cmdline.clear();
  record.build_id.clear();
  if (auto exe = proc_.exe(record.pid)) {
    record.exe = exe->ends_with(deleted) ? exe->substr(0, exe->size() - deleted.size()) : *exe;
  }
  if (auto cmdline = proc_.cmdline(record.pid)) {
    record.cmdline = fmt::format("{}", fmt::join(*cmdline, " "));
  }
}

std::string Tracker::role_after_exec(const LiveProcess& process, const std::string& exe,
                                     std::string_view comm) {
  if (process.on_top) {
    roles_.add_root_program(exe);
    return process.record.role;
  }
  roles_.give_back(process.record.role);
  return roles_.assign(exe.empty() ? std::string(comm) : exe);
}

void Tracker::on_exec(pid_t pid, std::string_view comm, TimeNs time) {
  auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  LiveProcess& process = found->second;
  if (!process.awaits_exec && process.record.begin_ns >= time) return;  // /proc showed this image
  model::Process record = process.record;
  record.comm = comm;
  record.begin_ns = time;
  read_image(record);
  record.role = role_after_exec(process, record.exe, comm);
  if (process.awaits_exec) {
    process.awaits_exec = false;
    process.record = record;
    sink_.put_process(record);
    if (auto main = threads_.find(pid); main != threads_.end()) {
      main->second.record.begin_ns = time;
      rename(main->second, std::string(comm));
    }
    return;
  }
  bool on_top = process.on_top;
  // Until now it was a copy of its parent, which was no worker: it existed only to execute this
  // program.
  if (!on_top) process.record.role = record.role + " before exec";
  end_image(process, time);
  LiveProcess& next = begin_process(std::move(record), on_top);
  begin_thread(next, pid, std::string(comm), time);
}

void Tracker::on_comm(pid_t tid, std::string_view name) {
  auto found = threads_.find(tid);
  if (found == threads_.end() || found->second.record.name == name) return;
  rename(found->second, std::string(name));
  if (tid != found->second.task.pid) return;
  auto owner = processes_.find(tid);
  if (owner == processes_.end()) return;
  owner->second.record.comm = name;
  sink_.put_process(owner->second.record);
}

void Tracker::on_exit(pid_t pid, pid_t tid, TimeNs time) {
  auto found = threads_.find(tid);
  if (found == threads_.end() || found->second.task.pid != pid) return;
  if (found->second.record.begin_ns > time) return;  // a former holder of the tid
  end_thread(tid, time);
}

bool Tracker::just_exited(pid_t tid, TimeNs time) const {
  const Burial& burial = burials_[static_cast<size_t>(tid) % burials_.size()];
  return burial.tid == tid && time < burial.time + kBurialNs;
}

const TrackedTask* Tracker::find_or_adopt(pid_t pid, pid_t tid, TimeNs time) {
  auto found = threads_.find(tid);
  if (found != threads_.end() && found->second.task.pid == pid) return &found->second.task;
  if (tid <= 0) return nullptr;
  if (found != threads_.end()) end_thread(tid, time);
  auto owner = processes_.find(pid);
  if (owner == processes_.end() || just_exited(tid, time)) return nullptr;
  auto name = proc_.comm(pid, tid);
  begin_thread(owner->second, tid, name ? *name : owner->second.record.comm, time);
  return find(tid);
}

const model::Process* Tracker::process(pid_t pid) const {
  auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : &found->second.record;
}

const model::Thread* Tracker::thread(pid_t tid) const {
  auto found = threads_.find(tid);
  return found == threads_.end() ? nullptr : &found->second.record;
}

std::vector<pid_t> Tracker::pids() const {
  std::vector<pid_t> all;
  for (const auto& [pid, process] : processes_) all.push_back(pid);
  std::ranges::sort(all);
  return all;
}

std::vector<pid_t> Tracker::tids() const {
  std::vector<pid_t> all;
  for (const auto& [tid, thread] : threads_) all.push_back(tid);
  std::ranges::sort(all);
  return all;
}

uint32_t Tracker::adopt_new_threads(LiveProcess& process, const std::vector<pid_t>& present,
                                    TimeNs time) {
  uint32_t adopted = 0;
  for (pid_t tid : present) {
    if (process.tids.contains(tid) || just_exited(tid, time)) continue;
    auto name = proc_.comm(process.record.pid, tid);
    if (!name) continue;  // gone again
    end_thread(tid, time);
    begin_thread(process, tid, *name, time);
    ++adopted;
  }
  return adopted;
}

uint32_t Tracker::adopt_new_children(TimeNs time) {
  uint32_t adopted = 0;
  ProcessTable table = ProcessTable::read(proc_);
  for (pid_t pid : pids()) {
    for (pid_t child : table.descendants(pid)) {
      const ProcessEntry* entry = table.find(child);
      if (contains(child) || !contains(entry->parent) || !entry->has_program() ||
          just_exited(child, time)) {
        continue;
      }
      fork_process(processes_.at(entry->parent), entry->parent, child, time);
      LiveProcess& process = processes_.at(child);
      if (process.record.exe != entry->exe) {
        process.record.comm = entry->comm;
        read_image(process.record);
        process.record.role = role_after_exec(process, process.record.exe, entry->comm);
        sink_.put_process(process.record);
      }
      on_comm(child, entry->comm);
      adopted += 1 + adopt_new_threads(process, proc_.tids(child), time);
    }
  }
  return adopted;
}

uint32_t Tracker::resync(TimeNs time) {
  uint32_t adopted = 0;
  for (pid_t pid : pids()) {
    std::vector<pid_t> present = proc_.tids(pid);
    adopted += adopt_new_threads(processes_.at(pid), present, time);
    std::vector<pid_t> known(processes_.at(pid).tids.begin(), processes_.at(pid).tids.end());
    std::ranges::sort(known);
    for (pid_t tid : known) {
      TimeNs& missing_since = threads_.at(tid).missing_since;
      if (std::ranges::binary_search(present, tid)) {
        missing_since = 0;
      } else if (missing_since == 0) {
        missing_since = time;
      } else {
        end_thread(tid, missing_since);
      }
    }
  }
  return adopted + (include_children_ ? adopt_new_children(time) : 0);
}

}  // namespace assay::target
