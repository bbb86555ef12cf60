// What a thread waited for, told from the evidence of one wait.
//
// Evidence in order of strength: the kernel functions it slept in, the system call and the kind of
// file descriptor, and, where neither is known, the libc function that called the kernel. A futex
// is told apart into lock and condition by the user functions above it. Programs that build locks
// of their own (databases, interpreters) wait in epoll, semaphores or condition variables; the
// functions that do so are known by name and say what the wait means. The rows are data, in
// wait_kind_table.cpp; one unit test checks every row.
// Pure functions; StackEvidence may be computed once per stack and kept.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "analysis/time/block_kind.h"
#include "model/sample.h"

namespace assay::analysis {

// What a stack alone says. `unknown` where it says nothing.
struct StackEvidence {
  BlockKind kernel = BlockKind::unknown;   // from kernel functions
  BlockKind user = BlockKind::unknown;     // from user functions: also tells futexes apart
  BlockKind meaning = BlockKind::unknown;  // from a program's own lock or flush: beats the others
  bool accelerator_call = false;           // a call that waits for a device is on the stack
  bool accelerator_code = false;           // a vendor's library waits, and the program called it
  bool semaphore = false;                  // of the user's: it may be used as a lock
  bool any = false;                        // there is a stack at all
};

// Function names leaf first; the kernel's part and the user's part of one stack.
StackEvidence evidence_of(std::span<const std::string_view> kernel_functions,
                          std::span<const std::string_view> user_functions);

// Of the user's part of a stack, leaf first: who waits for a device.
struct CodePlace {
  std::string_view function, module;
};
void add_accelerator_evidence(std::span<const CodePlace> user, StackEvidence& evidence);

BlockKind classify(const StackEvidence& stack, uint16_t syscall, model::FdKind fd_kind);

// How a row of the tables matches a function's name, after normal_name().
enum class Match : uint8_t { exact, prefix, suffix };
struct NameRow {
  std::string_view name;
  BlockKind kind;
  Match match = Match::exact;
};
struct SyscallRow {
  uint16_t number;
  BlockKind kind;
  bool by_descriptor = false;  // `kind` holds when the descriptor's kind is not known
};
// How the locks of one function are told apart.
enum class LockIdentity : uint8_t {
  address,              // each has a futex of its own
  function_of_process,  // waiters sleep on something of their own: all waits of a process are one
  function,             // likewise, and processes share the lock
};
struct MeaningRow : NameRow {
  LockIdentity identity = LockIdentity::address;
};
std::span<const NameRow> kernel_rows();
std::span<const NameRow> user_rows();
std::span<const SyscallRow> syscall_rows();
// What a function of a well-known program waits for, whatever call it waits with.
std::span<const MeaningRow> meaning_rows();
const MeaningRow* meaning_of(std::string_view user_function);  // null: it is not listed
// Frames from the leaf on in which such a function is looked for.
inline constexpr size_t kMeaningFrames = 10;
// Calls of vendors' libraries that end when a device is done, and those libraries by file name.
std::span<const NameRow> accelerator_calls();
bool is_accelerator_call(std::string_view user_function);
bool is_accelerator_module(std::string_view module);
bool is_page_fault_handler(std::string_view kernel_function);
bool is_semaphore_wait(std::string_view user_function);

// A function's name without leading underscores, arguments, symbol version and compiler's suffixes.
std::string_view normal_name(std::string_view name);

}  // namespace assay::analysis
