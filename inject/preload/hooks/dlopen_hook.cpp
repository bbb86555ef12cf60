#include "inject/preload/hooks/dlopen_hook.h"

#include <cstring>

#include "inject/preload/attach_internal.h"
#include "inject/preload/hooks/loaded_object.h"
#include "inject/preload/thread_state.h"

namespace assay::inject {

namespace {

using Dlopen = void* (*)(const char*, int);

}  // namespace
}  // namespace assay::inject

using namespace assay::inject;

extern "C" {

void* assay_real_dlopen = nullptr;

// 1: continue to dlopen as if there were no hook.
int assay_dlopen_caller_matters(const char* file) {
  bool matters = !file || !std::strchr(file, '/') || std::strchr(file, '$');
  if (matters) {
    ask_for_rescan();
    thread_state.bytes_left = 0;
  }
  return matters;
}

void* assay_dlopen_between(const char* file, int mode) {
  void* handle = reinterpret_cast<Dlopen>(assay_real_dlopen)(file, mode);
  rescan_now();
  return handle;
}

void* assay_hook_dlopen(const char* file, int mode);

}  // extern "C"

// Must leave by a jump, with the caller's return address on top of the stack, however it is
// compiled.
#if defined(__x86_64__)
asm(R"(
.text
.type assay_hook_dlopen, @function
.globl assay_hook_dlopen
.hidden assay_hook_dlopen
.hidden assay_real_dlopen
.hidden assay_dlopen_between
.hidden assay_dlopen_caller_matters
assay_hook_dlopen:
.cfi_startproc
  push %rdi
  .cfi_adjust_cfa_offset 8
  push %rsi
  .cfi_adjust_cfa_offset 8
  sub $8, %rsp
  .cfi_adjust_cfa_offset 8
  call assay_dlopen_caller_matters
  add $8, %rsp
  .cfi_adjust_cfa_offset -8
  pop %rsi
  .cfi_adjust_cfa_offset -8
  pop %rdi
  .cfi_adjust_cfa_offset -8
  test %eax, %eax
  jz assay_dlopen_between
  jmp *assay_real_dlopen(%rip)
.cfi_endproc
.size assay_hook_dlopen, . - assay_hook_dlopen
)");
#else
void* assay_hook_dlopen(const char* file, int mode) {
  assay_dlopen_caller_matters(file);
  return reinterpret_cast<Dlopen>(assay_real_dlopen)(file, mode);
}
#endif

namespace assay::inject {
namespace {

const Hook kHooks[] = {{"dlopen", reinterpret_cast<void*>(assay_hook_dlopen), &assay_real_dlopen}};

}  // namespace

void find_dlopen() {
  if (!assay_real_dlopen) assay_real_dlopen = find_definition("dlopen").at;
}

HookList dlopen_hooks() {
  return {kHooks, 1};
}

}  // namespace assay::inject
