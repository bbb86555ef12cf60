// One line on stderr, with "libassay: " before it; and how the environment's values are read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "assay/assay.h"

namespace assay::inproc {

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

// A number from the environment; `otherwise` when it is missing or not a number.
int64_t environment_number(const char* name, int64_t otherwise);
bool environment_flag(const char* name);
// ASSAY_PROFILE_FORMAT=pprof, else gperftools'.
assay_format environment_format();

// The path in variable `name`, as gperftools shares it between processes: the first process uses it
// unchanged and marks it (in the environment that its children inherit); the paths of the children
// end in _PID. False: not set.
bool environment_path(const char* name, char* path, size_t room);
// Removes the mark: this process left it, in an earlier program.
void unmark_environment_path(const char* name);
// Adds _PID, for a forked child.
void add_pid(char* path, size_t room);

// Installs `handler` for `signal`, if it is valid. False: it is not, or the host uses it.
bool take_request_signal(int signal, void (*handler)(int));

}  // namespace assay::inproc
