#include "capture/heap/attach_guard.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <exception>
#include <span>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/process/procfs.h"

namespace assay::capture {
namespace {

constexpr int64_t kPatienceNs = 60 * kNsPerSecond;

// What the guard says at its end; a descriptor may travel with it.
struct Message {
  bool done = false;
  bool at_malloc = false;
  bool has_memory = false;
  int code = 0;
  int64_t pause_ns = 0;
  std::array<char, 1024> what{};
  std::array<char, 512> remedy{};
};

template <size_t Size>
void put(const std::string& text, std::array<char, Size>& into) {
  std::copy_n(text.data(), std::min(text.size(), Size - 1), into.data());
}

Message message_of(const Result<GuardedResult>& result) {
  Message message;
  message.done = result.has_value();
  if (result) {
    message.pause_ns = result->pause.ns;
    message.at_malloc = result->pause.at_malloc;
    message.has_memory = result->memory.valid();
  } else {
    message.code = result.error().code;
    put(result.error().what, message.what);
    put(result.error().remedy, message.remedy);
  }
  return message;
}

void send_result(int socket, const Result<GuardedResult>& result) {
  Message message = message_of(result);
  iovec io{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (message.has_memory) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    int fd = result->memory.get();
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  // It fails when Assay is gone: then there is no reader.
  (void)::sendmsg(socket, &header, MSG_NOSIGNAL);
}

// False: the guard has not finished within kPatienceNs. The only reason can be that the target was
// stopped in the middle; the guard finishes when the target continues.
bool wait_for_result(int socket) {
  TimeNs deadline = monotonic_ns() + kPatienceNs;
  for (TimeNs left = kPatienceNs; left > 0; left = deadline - monotonic_ns()) {
    pollfd other{socket, POLLIN, 0};
    if (::poll(&other, 1, static_cast<int>(left / kNsPerMs + 1)) > 0) return true;
  }
  return false;
}

Result<GuardedResult> receive_result(int socket) {
  Message message;
  iovec io{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof message))
    return fail("the process that attaches ended before its work was done");
  GuardedResult result;
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    result.memory = UniqueFd(fd);
  }
  if (!message.done) {
    return std::unexpected(Error{message.what.data(), message.remedy.data(), message.code});
  }
  result.pause = {message.pause_ns, message.at_malloc};
  return result;
}

// Where the kernel keeps the command line of this process, as its stat file tells.
std::span<char> own_command_line() {
  constexpr size_t kBeginField = 48, kEndField = 49, kFirstAfterName = 3;
  auto stat = os::ProcFs().read("self/stat");
  size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return {};
  std::istringstream fields(stat->substr(name_end + 1));
  std::string state;
  fields >> state;
  uintptr_t begin = 0, end = 0;
  for (size_t field = kFirstAfterName + 1; field <= kEndField; ++field) {
    uintptr_t value = 0;  // some are negative, some larger than a signed one
    fields >> value;
    if (field == kBeginField) begin = value;
    if (field == kEndField) end = value;
  }
  if (!fields || begin == 0 || end <= begin) return {};
  return {reinterpret_cast<char*>(begin), end - begin};
}

// pkill assay and pkill -f assay do not mean this process.
void change_name() {
  prctl(PR_SET_NAME, kGuardName);
  std::span<char> line = own_command_line();
  if (line.empty()) return;
  std::fill(line.begin(), line.end(), '\0');
  std::copy_n(kGuardName, std::min(std::strlen(kGuardName), line.size() - 1), line.begin());
}

// Nothing that is meant for Assay may reach this process: no signal of a terminal or of a process
// group, no handler of Assay's, none of its descriptors.
void stand_apart(int socket) {
  setsid();
  change_name();
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGCHLD})
    ::signal(signal, signal == SIGCHLD ? SIG_DFL : SIG_IGN);
  int nowhere = ::open("/dev/null", O_RDWR);
  // Never closed: otherwise the target's memory could get the number of standard error.
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, fd);
  constexpr unsigned kFirst = STDERR_FILENO + 1;
  auto kept = static_cast<unsigned>(socket);
  if (kept > kFirst) ::syscall(SYS_close_range, kFirst, kept - 1, 0);
  ::syscall(SYS_close_range, kept + 1, ~0U, 0);
  // The thread that is held waits for us: be quick. Needs privilege.
  setpriority(PRIO_PROCESS, 0, -15);
}

bool is_alone(int socket) {
  pollfd other{socket, 0, 0};
  return ::poll(&other, 1, 0) > 0 && (other.revents & (POLLHUP | POLLERR)) != 0;
}

[[noreturn]] void guard(
    int socket, const std::function<Result<GuardedResult>(const IsAbandoned&)>& work) noexcept {
  stand_apart(socket);
  Result<GuardedResult> result;
  try {
    result = work([socket] { return is_alone(socket); });
  } catch (const std::exception& error) {
    result = fail("attaching failed: {}", error.what());
  }
  send_result(socket, result);
  _exit(0);
}

}  // namespace

Result<GuardedResult> run_guarded(
    const std::function<Result<GuardedResult>(const IsAbandoned&)>& work) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno("no process can be made to attach with");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  pid_t child = ::fork();
  if (child < 0) return fail_errno("no process can be made to attach with");
  if (child == 0) guard(theirs.get(), work);
  theirs.reset();
  if (!wait_for_result(ours.get())) {
    return fail_with_remedy(
        "the target was stopped during the attach",
        "continue it (kill -CONT), then try again");
  }
  auto result = receive_result(ours.get());
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return result;
}

}  // namespace assay::capture
