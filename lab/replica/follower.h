// A follower: takes appended commands from the leader, keeps them in its log, acknowledges its last
// index.
//
// One connection at a time, one thread, until the process shall end. A command is acknowledged
// after its record is written. Faults: `slow` sleeps before every acknowledgement, `flush`
// acknowledges every command by itself, `sync` forces every record to the disk.
#pragma once

#include <string>

#include "lab/common/options.h"

namespace lab::replica {

int run_follower(const Options& options, int id, int listener, const std::string& log_path);

}  // namespace lab::replica
