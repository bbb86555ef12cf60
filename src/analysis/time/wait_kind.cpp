#include "analysis/time/wait_kind.h"

#include <algorithm>
#include <array>

namespace assay::analysis {
namespace {

// Deeper user frames belong to the caller's business, not to the primitive that waits.
constexpr size_t kUserFramesLookedAt = 8;

// Where a name's arguments begin. What follows a dot is the type of Go's method:
// sync.(*Mutex).Lock.
size_t arguments_of(std::string_view name) {
  size_t at = name.find('(');
  while (at != std::string_view::npos && at > 0 && name[at - 1] == '.') at = name.find('(', at + 1);
  return at;
}

template <class Row>
const Row* row_of_name(std::string_view function, std::span<const Row> rows) {
  std::string_view name = normal_name(function);
  for (const Row& row : rows) {
    bool hit = row.match == Match::exact    ? name == row.name
               : row.match == Match::prefix ? name.starts_with(row.name)
                                            : name.ends_with(row.name);
    if (hit) return &row;
  }
  return nullptr;
}

BlockKind kind_of_name(std::string_view function, std::span<const NameRow> rows) {
  const NameRow* row = row_of_name(function, rows);
  return row ? row->kind : BlockKind::unknown;
}

BlockKind kind_of_descriptor(model::FdKind fd, BlockKind when_unknown) {
  using enum model::FdKind;
  switch (fd) {
    case file:
      return BlockKind::disk;
    case pipe:
      return BlockKind::pipe;
    case socket_listen:
    case socket_stream:
    case socket_accepted:
    case socket_connected:
    case socket_datagram:
    case socket_unix:
      return BlockKind::network_receive;
    case epoll:
    case eventfd:
    case signalfd:
    case inotify:
    case io_uring:
      return BlockKind::poll;
    case timerfd:
      return BlockKind::timer;
    case device:
    case other:
      return BlockKind::other;
    case none:
      break;
  }
  return when_unknown;
}

bool writes(uint16_t syscall) {
  constexpr uint16_t kWrite = 1, kWritev = 20, kSendfile = 40;
  return syscall == kWrite || syscall == kWritev || syscall == kSendfile;
}

BlockKind kind_of_syscall(uint16_t syscall, model::FdKind fd) {
  static const std::array<const SyscallRow*, 512> kByNumber = [] {
    std::array<const SyscallRow*, 512> rows{};
    for (const SyscallRow& row : syscall_rows()) {
      if (row.number < rows.size()) rows[row.number] = &row;
    }
    return rows;
  }();
  const SyscallRow* row = syscall < kByNumber.size() ? kByNumber[syscall] : nullptr;
  if (!row) return BlockKind::unknown;
  if (!row->by_descriptor) return row->kind;
  BlockKind kind = kind_of_descriptor(fd, row->kind);
  return kind == BlockKind::network_receive && writes(syscall) ? BlockKind::network_send : kind;
}

BlockKind told_apart(BlockKind kind, BlockKind user) {
  bool tells = user == BlockKind::lock || user == BlockKind::condition;
  return kind == BlockKind::futex && tells ? user : kind;
}

}  // namespace

std::string_view normal_name(std::string_view name) {
  while (true) {
    if (name.starts_with('_')) {
      name.remove_prefix(1);
    } else if (name.starts_with("GI_")) {
      name.remove_prefix(3);
    } else {
      break;
    }
  }
  name = name.substr(0, arguments_of(name));
  for (std::string_view end : {"@", " [clone", ".constprop", ".isra", ".part", ".cold", ".llvm"}) {
    name = name.substr(0, name.find(end));
  }
  return name;
}

bool is_semaphore_wait(std::string_view user_function) {
  std::string_view name = normal_name(user_function);
  return name.starts_with("new_sem_") || name == "sem_wait" || name == "sem_timedwait" ||
         name == "sem_clockwait";
}

StackEvidence evidence_of(std::span<const std::string_view> kernel_functions,
                          std::span<const std::string_view> user_functions) {
  StackEvidence evidence;
  evidence.any = !kernel_functions.empty() || !user_functions.empty();
  for (std::string_view function : kernel_functions) {
    if (evidence.kernel == BlockKind::unknown) {
      evidence.kernel = kind_of_name(function, kernel_rows());
    }
    // A fault's cause is the fault, even when what it waits for is a disk or a kernel lock.
    if (is_page_fault_handler(function)) evidence.kernel = BlockKind::page_fault;
  }
  size_t looked_at = std::min(user_functions.size(), kUserFramesLookedAt);
  for (std::string_view function : user_functions.first(looked_at)) {
    BlockKind kind = kind_of_name(function, user_rows());
    if (kind == BlockKind::unknown) continue;
    evidence.user = kind;
    evidence.semaphore = is_semaphore_wait(function);
    // "Some futex" is only kept until a caller says which use it is.
    if (kind != BlockKind::futex) break;
  }
  // The outermost one tells: a flush that waits for the lock of another flush is a flush.
  for (std::string_view function :
       user_functions.first(std::min(user_functions.size(), kMeaningFrames))) {
    if (const MeaningRow* row = meaning_of(function)) evidence.meaning = row->kind;
  }
  return evidence;
}

bool is_accelerator_call(std::string_view user_function) {
  return row_of_name(user_function, accelerator_calls()) != nullptr;
}

// A driver's library has many frames of its own, most without names, and sleeps in libc.
void add_accelerator_evidence(std::span<const CodePlace> user, StackEvidence& evidence) {
  auto is_libc = [](std::string_view module) {
    return module.starts_with("libc.so") || module.starts_with("libc-") ||
           module.starts_with("libpthread") || module.starts_with("[vdso]") ||
           module.starts_with("ld-") || module.starts_with("libstdc++");
  };
  size_t at = 0;
  while (at < user.size() && is_libc(user[at].module)) ++at;
  bool vendors = at < user.size() && is_accelerator_module(user[at].module);
  for (const CodePlace& place : user) {
    evidence.accelerator_call |= is_accelerator_call(place.function);
    // A thread that the library made for itself ends in libc, and is no wait of the program's.
    bool programs = !is_libc(place.module) && !is_accelerator_module(place.module);
    evidence.accelerator_code |= vendors && programs;
  }
}

const MeaningRow* meaning_of(std::string_view user_function) {
  return row_of_name(user_function, meaning_rows());
}

BlockKind classify(const StackEvidence& stack, uint16_t syscall, model::FdKind fd_kind) {
  bool fault = stack.kernel == BlockKind::page_fault;
  if (stack.meaning != BlockKind::unknown && !fault) return stack.meaning;
  // The vendor's own locks are locks, unless it is a wait for the device that takes them.
  bool locks = stack.accelerator_code && stack.user == BlockKind::lock;
  if (!fault && (stack.accelerator_call || (stack.accelerator_code && !locks)))
    return BlockKind::accelerator;
  if (stack.kernel != BlockKind::unknown) return told_apart(stack.kernel, stack.user);
  if (syscall != model::kNoSyscall) {
    BlockKind kind = kind_of_syscall(syscall, fd_kind);
    if (kind != BlockKind::unknown) return told_apart(kind, stack.user);
  }
  if (stack.user != BlockKind::unknown) return stack.user;
  return stack.any || syscall != model::kNoSyscall ? BlockKind::other : BlockKind::unknown;
}

}  // namespace assay::analysis
