// One line on stderr, with "libassay: " before it; and how the environment's values are read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "assay/assay.h"

namespace assay::inproc {

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

// A number of the environment; `otherwise` when it is missing or none.
int64_t environment_number(const char* name, int64_t otherwise);
bool environment_flag(const char* name);
// ASSAY_PROFILE_FORMAT=pprof, else gperftools'.
assay_format environment_format();

// The path in variable `name`, as gperftools shares it between processes: the first process takes
// it as it is and marks it (in the environment that its children inherit), theirs end in _PID.
// False: not set.
bool environment_path(const char* name, char* path, size_t room);
// Takes the mark off again: the process that left it is this one, in an earlier program.
void unmark_environment_path(const char* name);
// Adds _PID, for a forked child.
void add_pid(char* path, size_t room);

// Runs `handler` for `signal`, if it is one. False: it is not, or the host has taken it.
bool take_request_signal(int signal, void (*handler)(int));

}  // namespace assay::inproc
