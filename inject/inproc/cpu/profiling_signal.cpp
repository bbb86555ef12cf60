#include "inject/inproc/cpu/profiling_signal.h"

#include <cerrno>

namespace assay::inproc {
namespace {

void on_signal(int, siginfo_t* info, void* context) {
  int saved_errno = errno;
  if (info->si_code == SI_TIMER) on_cpu_timer(*info, context);
  if (info->si_code == SI_QUEUE) on_stack_request(*info, context);
  errno = saved_errno;
}

bool is_free(int signal) {
  struct sigaction now {};
  if (sigaction(signal, nullptr, &now) != 0) return false;
  if ((now.sa_flags & SA_SIGINFO) != 0) return now.sa_sigaction == on_signal;
  return now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN;
}

bool install(int signal) {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  return sigaction(signal, &action, nullptr) == 0;
}

}  // namespace

int take_profiling_signal(int wanted) {
  if (wanted > 0 && wanted < NSIG) return is_free(wanted) && install(wanted) ? wanted : 0;
  if (is_free(SIGPROF) && install(SIGPROF)) return SIGPROF;
  for (int signal = SIGRTMAX - 2; signal > SIGRTMIN; --signal)
    if (is_free(signal) && install(signal)) return signal;
  return 0;
}

}  // namespace assay::inproc
