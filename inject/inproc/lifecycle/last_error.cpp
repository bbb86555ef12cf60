#include "inject/inproc/lifecycle/last_error.h"

#include <cstdarg>
#include <cstdio>

#include "inject/inproc/locks/futex_lock.h"

namespace assay::inproc {
namespace {

FutexLock error_lock;
char error_text[256];  // guarded by error_lock

}  // namespace

int fail(const char* format, ...) {
  Hold hold(error_lock);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error_text, sizeof error_text, format, arguments);
  va_end(arguments);
  return -1;
}

char* copy_last_error(char* text, size_t room) {
  if (text == nullptr || room == 0) return text;
  Hold hold(error_lock);
  snprintf(text, room, "%s", error_text);
  return text;
}

void forget_error_lock() {
  error_lock.reset();
}

}  // namespace assay::inproc
