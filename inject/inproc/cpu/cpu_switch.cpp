#include "inject/inproc/cpu/cpu_switch.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "inject/inproc/lifecycle/keeper.h"
#include "inject/inproc/lifecycle/last_error.h"
#include "inject/inproc/write/profile_files.h"
#include "inject/inproc/lifecycle/say.h"

namespace assay::inproc {
namespace {

struct CpuSwitch {
  bool on = false;
  bool running = false;
  int signal = 0;
  uint32_t next_number = 0;
  CpuPlan plan;
  assay_format format = ASSAY_GPERFTOOLS;
  char path[3072] = "";  // as asked for
  char file[3200] = "";  // of the profile that runs
};

CpuSwitch cpu;                          // used by the keeper only, once the program runs
std::atomic<uint32_t> asked, answered;  // toggles

void begin() {
  if (cpu.signal != 0)
    snprintf(cpu.file, sizeof cpu.file, "%s.%u", cpu.path, cpu.next_number++);
  else
    snprintf(cpu.file, sizeof cpu.file, "%s", cpu.path);
  const char* problem = start_cpu_profile(cpu.plan);
  cpu.running = problem == nullptr;
  if (problem != nullptr) say("%s: %s", cpu.file, problem);
}

void finish() {
  CpuResult result;
  cpu.running = false;
  if (!stop_cpu_profile(result)) return;
  ByteBuffer bytes;
  bool made = write_cpu_profile(result, cpu.format, bytes);
  finish_cpu_profile();
  assay_output output{};
  output.file = cpu.file;
  if (made && deliver(bytes, output) == 0) return;
  char sentence[256];
  say("%s", made ? copy_last_error(sentence, sizeof sentence) : "no memory for the CPU profile");
}

int64_t answer_requests() {
  for (; answered.load() != asked.load(); answered.fetch_add(1)) {
    if (cpu.running)
      finish();
    else
      begin();
  }
  return kNever;
}

void on_request(int) {
  int saved_errno = errno;
  asked.fetch_add(1);
  wake_keeper();
  errno = saved_errno;
}

}  // namespace

void start_cpu_switch() {
  if (!environment_path("CPUPROFILE", cpu.path, sizeof cpu.path)) return;
  int64_t hz = environment_number("CPUPROFILE_FREQUENCY", kDefaultHz);
  cpu.plan.hz = hz < 1 ? kDefaultHz : hz > kMaxHz ? kMaxHz : static_cast<uint32_t>(hz);
  cpu.plan.wall_clock = environment_flag("CPUPROFILE_REALTIME");
  cpu.plan.signal = static_cast<int>(environment_number("CPUPROFILE_TIMER_SIGNAL", 0));
  cpu.format = environment_format();
  cpu.on = true;
  int64_t signal = environment_number("CPUPROFILESIGNAL", 0);
  if (signal == 0) return begin();
  if (!take_request_signal(static_cast<int>(signal), on_request)) {
    say("CPUPROFILESIGNAL=%ld is no signal that can be used", signal);
    return;
  }
  cpu.signal = static_cast<int>(signal);
  keep(answer_requests);
}

void end_cpu_switch() {
  if (cpu.running) finish();
}

void cpu_switch_in_child() {
  if (!cpu.on) return;
  cpu.next_number = 0;
  asked.store(0);
  answered.store(0);
  add_pid(cpu.path, sizeof cpu.path);
  // No thread looks for new ones: this child may be about to execute something else.
  cpu.plan.scan = false;
  cpu.running = false;
  if (cpu.signal == 0) begin();
}

bool cpu_switch_has_signal() {
  return cpu.signal != 0;
}

void cpu_switch_in_daemon() {
  if (cpu.signal != 0) keep(answer_requests);
}

}  // namespace assay::inproc
