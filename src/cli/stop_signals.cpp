#include "cli/stop_signals.h"

#include <csignal>

namespace assay::cli {
namespace {

std::atomic<bool> requested{false};

void request_stop(int) {
  requested = true;
}

}  // namespace

std::atomic<bool>& stop_requested() {
  return requested;
}

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESETHAND;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup stays in force
  }
}

}  // namespace assay::cli
