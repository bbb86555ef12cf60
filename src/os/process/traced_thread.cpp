#include "os/process/traced_thread.h"

#include <elf.h>
#include <linux/filter.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

namespace assay::os {
namespace {

__ptrace_request request_of(Resume how) {
  switch (how) {
    case Resume::run:
      return PTRACE_CONT;
    case Resume::step:
      return PTRACE_SINGLESTEP;
    case Resume::detach:
      return PTRACE_DETACH;
    case Resume::listen:
      return PTRACE_LISTEN;
  }
  return PTRACE_CONT;
}

}  // namespace

bool seize_thread(pid_t tid, long options) {
  return ::ptrace(PTRACE_SEIZE, tid, nullptr, options) == 0;
}

bool interrupt_thread(pid_t tid) {
  return ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) == 0;
}

bool resume_thread(pid_t tid, Resume how, int signal) {
  return ::ptrace(request_of(how), tid, nullptr,
                  reinterpret_cast<void*>(static_cast<intptr_t>(signal))) == 0;
}

unsigned long event_message(pid_t tid) {
  unsigned long message = 0;
  ::ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &message);
  return message;
}

bool read_registers(pid_t tid, user_regs_struct& registers) {
  iovec io{&registers, sizeof registers};
  return ::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) == 0;
}

bool write_registers(pid_t tid, const user_regs_struct& registers) {
  iovec io{const_cast<user_regs_struct*>(&registers), sizeof registers};
  return ::ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &io) == 0;
}

bool read_vector_registers(pid_t tid, size_t most, std::vector<uint8_t>& registers) {
  registers.resize(most);
  iovec io{registers.data(), registers.size()};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io) != 0) return false;
  registers.resize(io.iov_len);
  return true;
}

bool write_vector_registers(pid_t tid, const std::vector<uint8_t>& registers) {
  iovec io{const_cast<uint8_t*>(registers.data()), registers.size()};
  return ::ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &io) == 0;
}

bool read_signal_mask(pid_t tid, uint64_t& mask) {
  return ::ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) == 0;
}

bool write_signal_mask(pid_t tid, uint64_t mask) {
  return ::ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask) == 0;
}

bool write_code_word(pid_t tid, uint64_t address, uint64_t word) {
  return ::ptrace(PTRACE_POKETEXT, tid, address, word) == 0;
}

long read_seccomp_filter(pid_t tid, size_t index, sock_filter* into) {
  return ::syscall(SYS_ptrace, PTRACE_SECCOMP_GET_FILTER, tid, index, into);
}

}  // namespace assay::os
