// Lives for --after-ms with a busy and a sleeping thread, prints its truth and ends: by exit(3), by
// an unhandled signal (--crash), or as by the OOM killer (--kill).
#include <csignal>
#include <cstdlib>
#include <thread>

#include <unistd.h>

#include "truth.h"

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"after-ms", 1500}}, {"crash", "kill"});
  truth::Deadline deadline(static_cast<double>(arguments["after-ms"]) / 1000);
  truth::Truth main_thread("");
  std::thread([] {
    truth::Truth self("busy");
    for (;;) truth::burn_chunk();
  }).detach();
  std::thread([] {
    truth::Truth self("sleeping");
    for (;;) self.wait([] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); });
  }).detach();
  deadline.wait_for_end(main_thread);
  truth::print_truths();
  if (arguments.has("crash")) std::raise(SIGSEGV);
  if (arguments.has("kill")) std::raise(SIGKILL);
  _exit(3);
}
