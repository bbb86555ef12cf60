// The sentence behind assay_last_error(): the last failure of this process.
#pragma once

#include <cstddef>

namespace assay::inproc {

// Stores the sentence; always returns -1.
int fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
char* copy_last_error(char* text, size_t room);
void forget_error_lock();  // in a forked child

}  // namespace assay::inproc
