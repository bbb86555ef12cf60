#include "lab/common/process.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lab {

void die_saying(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}

void die(const std::string& what) {
  die_saying(what + ": " + std::strerror(errno));
}

sigset_t block_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGCHLD);
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) die("pthread_sigmask");
  return set;
}

int listen_on_loopback(int& port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) die("socket");
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 1024) != 0) {
    die("cannot listen on 127.0.0.1:" + std::to_string(port));
  }
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

void announce(int port) {
  std::printf("listening 127.0.0.1:%d\n", port);
  std::fflush(stdout);
}

void name_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

void set_nodelay(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;
}

pid_t start_self(const std::vector<std::string>& arguments, int inherited_fd) {
  // Everything that allocates comes before the fork: other threads may hold malloc's locks.
  std::vector<std::string> words{program_invocation_name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  sigset_t none;
  sigemptyset(&none);
  pid_t parent = getpid();
  pid_t child = fork();
  if (child < 0) die("fork");
  if (child > 0) return child;
  if (!die_with_parent(parent)) _exit(1);
  if (inherited_fd >= 0) fcntl(inherited_fd, F_SETFD, 0);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv("/proc/self/exe", argv.data());
  _exit(127);
}

int open_nameless_file(const std::string& directory) {
  int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  std::string path = directory + "/lab-XXXXXX";  // a file system without O_TMPFILE
  fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) die("cannot create a file in " + directory);
  unlink(path.c_str());
  return fd;
}

}  // namespace lab
