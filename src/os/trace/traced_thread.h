// ptrace, the only door to it: what a tracer asks of one thread, one call each.
//
// In: the id of a thread. All calls but seize_thread() need a thread that this very thread of ours
// has seized, and all but interrupt_thread() one that is stopped; the kernel refuses the rest.
// No state is kept here: the caller keeps track of seized and stopped threads. Threads: ptrace
// belongs to the thread that seized. Failures: false, with errno; nothing was changed then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/types.h>

struct sock_filter;
struct user_regs_struct;

namespace assay::os {

enum class Resume : uint8_t { run, step, detach, listen };

bool seize_thread(pid_t tid, long options);
bool interrupt_thread(pid_t tid);
// `signal` is delivered to the thread; 0: none.
bool resume_thread(pid_t tid, Resume how, int signal = 0);
// What the last event was about: the child of a fork.
unsigned long event_message(pid_t tid);

bool read_registers(pid_t tid, user_regs_struct& registers);
bool write_registers(pid_t tid, const user_regs_struct& registers);
// The vector and floating-point registers, as many bytes as this CPU has of them, at most `most`.
bool read_vector_registers(pid_t tid, size_t most, std::vector<uint8_t>& registers);
bool write_vector_registers(pid_t tid, const std::vector<uint8_t>& registers);

// Blocked signals, bit N-1 for signal N.
bool read_signal_mask(pid_t tid, uint64_t& mask);
bool write_signal_mask(pid_t tid, uint64_t mask);

// Writes one word, also where the page is read-only.
bool write_code_word(pid_t tid, uint64_t address, uint64_t word);

// The instructions of the thread's seccomp filter `index` and how many there are; negative when
// there is no such filter (errno ENOENT) or it may not be read. `into` may be null.
long read_seccomp_filter(pid_t tid, size_t index, sock_filter* into);

}  // namespace assay::os
