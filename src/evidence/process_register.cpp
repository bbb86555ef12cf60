#include "evidence/process_register.h"

#include "capture/counters/facts.h"
#include "os/process/binary_reader.h"

namespace assay::evidence {
namespace {

constexpr int kMostProcessesWithFacts = 64;

}  // namespace

void ProcessRegister::put_process(const model::Process& process) {
  model::Process complete = process;
  if (complete.end_ns == model::kStillRunning)
    complete.build_id = build_id(process.pid, process.exe);
  if (complete.build_id.empty()) complete.build_id = build_ids_[process.exe];
  sink_.put_process(complete);
  if (process.id.value < next_process_) return;
  next_process_ = process.id.value + 1;
  std::lock_guard lock(mutex_);
  newcomers_.push_back({process.id, process.pid});
}

std::string ProcessRegister::build_id(pid_t pid, const std::string& exe) {
  if (exe.empty()) return "";  // launched and not yet executed
  auto [it, added] = build_ids_.try_emplace(exe);
  if (added) {
    auto file = os::open_program(pid, proc_.root());
    auto read = file ? os::binary_reader().build_id(file->get()) : Result<std::string>("");
    if (read) it->second = *read;
  }
  return it->second;
}

void ProcessRegister::write_host_facts() {
  host_ = os::read_host(proc_);
  for (const model::Fact& fact : capture::host_facts(host_)) sink_.add_fact(fact);
}

void ProcessRegister::write_new_facts() {
  std::deque<Newcomer> newcomers;
  {
    std::lock_guard lock(mutex_);
    newcomers.swap(newcomers_);
  }
  for (const Newcomer& newcomer : newcomers) {
    if (facts_written_++ >= kMostProcessesWithFacts) return;
    for (const model::Fact& fact :
         capture::read_process_facts(newcomer.id, newcomer.pid, host_, proc_, cgroups_)) {
      sink_.add_fact(fact);
    }
  }
}

}  // namespace assay::evidence
