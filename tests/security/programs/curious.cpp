// A parser that an attacker has taken over: loaded into assay with LD_PRELOAD, it waits until a run
// is read, or one is written by an import, and then tries what it should not be able
// to do. It says on standard error which of that worked, and then stops itself for who watches, if
// CURIOUS_STOPS is set.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

void say(const char* what) {
  (void)!::write(STDERR_FILENO, what, std::strlen(what));
}

void try_everything() {
  static bool tried = false;
  if (tried) return;
  tried = true;
  say("curious: parsing\n");
  const char* secret = std::getenv("CURIOUS_SECRET");
  if (::open(secret, O_RDONLY) >= 0) say("curious: read the secret\n");
  if (::open(secret, O_WRONLY) >= 0) say("curious: wrote the secret\n");
  if (::unlink(secret) == 0) say("curious: removed the secret\n");
  if (::chmod(secret, 0666) == 0) say("curious: changed the secret\n");
  if (::socket(AF_INET, SOCK_STREAM, 0) >= 0) say("curious: made a socket\n");
  if (::socket(AF_UNIX, SOCK_STREAM, 0) >= 0) say("curious: made a local socket\n");
  if (::ptrace(PTRACE_SEIZE, ::getppid(), 0, 0) == 0) say("curious: traces its parent\n");
  if (::kill(::getppid(), 0) == 0) say("curious: may signal its parent\n");
  long child = ::syscall(SYS_fork);
  if (child == 0) ::_exit(0);
  if (child > 0) say("curious: made a process\n");
  if (std::getenv("CURIOUS_STOPS") != nullptr) ::syscall(SYS_tgkill, ::getpid(), ::gettid(), SIGSTOP);
}

}  // namespace

// By which runs are read, and written by an import. Both names: which one is called depends on how the
// caller was compiled.
extern "C" ssize_t pread64(int fd, void* into, size_t bytes, off_t offset) {
  try_everything();
  return ::syscall(SYS_pread64, fd, into, bytes, offset);
}
extern "C" ssize_t pread(int fd, void* into, size_t bytes, off_t offset) {
  return pread64(fd, into, bytes, offset);
}
extern "C" ssize_t pwrite64(int fd, const void* from, size_t bytes, off_t offset) {
  try_everything();
  return ::syscall(SYS_pwrite64, fd, from, bytes, offset);
}
extern "C" ssize_t pwrite(int fd, const void* from, size_t bytes, off_t offset) {
  return pwrite64(fd, from, bytes, offset);
}
