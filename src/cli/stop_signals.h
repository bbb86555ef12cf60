// Stop signals: Ctrl-C and its kin end a long command in good order.
//
// After install_stop_signals() the first SIGINT, SIGTERM or SIGHUP sets stop_requested(); a second
// one ends Assay at once. A signal that was ignored when Assay started (nohup) stays ignored.
// Threads: the flag may be read and set anywhere.
#pragma once

#include <atomic>

namespace assay::cli {

std::atomic<bool>& stop_requested();
void install_stop_signals();

}  // namespace assay::cli
