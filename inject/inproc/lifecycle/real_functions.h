// The C library's own functions behind the names that libassay.so interposes.
//
// hooks.cpp (libassay.so) looks them up after our own in the search order; direct_functions.cpp
// (libassay.a, which interposes nothing) calls them directly.
#pragma once

#include <pthread.h>

namespace assay::inproc {

int real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                        void* argument);

// True in libassay.so: lock waits and thread creations are seen.
bool hooks_are_here();

}  // namespace assay::inproc
