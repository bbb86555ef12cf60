// replica: a replicated log of three processes on loopback, and the launcher that starts them.
//
// Without --id it is the launcher: starts the leader (0) and two followers (1, 2), restarts a
// follower that has ended, and ends all of them when it ends in any way. See README.md.
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/common/options.h"
#include "lab/common/pprof.h"
#include "lab/common/process.h"
#include "lab/replica/follower.h"
#include "lab/replica/leader.h"

namespace {

constexpr int kReplicas = 3;

lab::Options declare_options() {
  lab::Options options("replica", "three replicas of a key-value log, with majority commit");
  options.text("dir", "", "where the logs are kept; none: files without a name");
  options.text("nameless-dir", "/var/tmp", "whose disk holds the files without a name");
  options.number("descriptor-work", 200, 0, 100'000'000, "steps of arithmetic per command");
  options.number("pause-us", 0, 0, 10'000'000, "microseconds that making a descriptor takes");
  options.number("id", -1, -1, kReplicas - 1, "internal: be this replica");
  options.number("listen-fd", -1, -1, 1 << 20, "internal: its listening socket");
  options.number("follower-1", 0, 0, 65535, "internal: the followers' ports");
  options.number("follower-2", 0, 0, 65535, "internal");
  options.fault("sync", 1000, "fdatasync calls per record of every log");
  options.fault("flush", 1, "every message is sent by itself");
  options.fault("lock", 100, "percent of a descriptor's work and pause under one lock");
  options.fault("slow", 10'000'000, "microseconds that followers wait before they acknowledge");
  options.fault("alloc", 1'000'000, "heap blocks per command");
  lab::declare_pprof(options);
  return options;
}

struct Group {
  std::vector<std::string> arguments;
  std::array<int, kReplicas> listeners;
  std::array<int, kReplicas> ports;
  std::array<pid_t, kReplicas> pids;

  void start(int id) {
    std::vector<std::string> words = arguments;
    words.insert(words.end(), {"--id", std::to_string(id), "--listen-fd",
                               std::to_string(listeners[id]), "--follower-1",
                               std::to_string(ports[1]), "--follower-2", std::to_string(ports[2])});
    pids[id] = lab::start_self(words, listeners[id]);
    std::printf("replica %d pid %d port %d\n", id, pids[id], ports[id]);
    std::fflush(stdout);
  }
};

// True: the leader has ended, and so has the group.
bool reap(Group& group) {
  bool leader_is_gone = false;
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (int id = 0; id < kReplicas; ++id) {
      if (group.pids[id] != pid) continue;
      std::fprintf(stderr, "replica: replica %d (pid %d) ended\n", id, pid);
      group.pids[id] = -1;
      if (id == 0)
        leader_is_gone = true;
      else
        group.start(id);
    }
  }
  return leader_is_gone;
}

int launch(const lab::Options& options) {
  sigset_t signals = lab::block_signals();
  Group group;
  group.arguments = options.arguments();
  group.ports = {static_cast<int>(options.number("port")), 0, 0};
  for (int id = 0; id < kReplicas; ++id)
    group.listeners[id] = lab::listen_on_loopback(group.ports[id]);
  for (int id = 1; id < kReplicas; ++id) group.start(id);
  group.start(0);
  close(group.listeners[0]);  // the leader's alone; the followers' are kept for their successors
  lab::announce(group.ports[0]);
  int result = 0;
  for (int number = 0; number != SIGTERM && number != SIGINT;) {
    sigwait(&signals, &number);
    if (number == SIGCHLD && reap(group)) {
      std::fprintf(stderr, "replica: without its leader the group ends\n");
      result = 1;
      break;
    }
  }
  for (pid_t pid : group.pids) {
    if (pid > 0) kill(pid, SIGTERM);
  }
  for (pid_t pid : group.pids) {
    if (pid > 0) waitpid(pid, nullptr, 0);
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  lab::Options options = declare_options();
  options.parse(argc, argv);
  int id = static_cast<int>(options.number("id"));
  if (id < 0) return launch(options);
  lab::serve_pprof(options, id);
  int listener = static_cast<int>(options.number("listen-fd"));
  fcntl(listener, F_SETFD, FD_CLOEXEC);
  const std::string& directory = options.text("dir");
  std::string path = directory.empty() ? "" : directory + "/replica-" + std::to_string(id) + ".log";
  if (id > 0) return lab::replica::run_follower(options, id, listener, path);
  sigset_t signals = lab::block_signals();
  lab::replica::Leader leader(options, path,
                              {static_cast<int>(options.number("follower-1")),
                               static_cast<int>(options.number("follower-2"))});
  leader.run(listener, signals);
  std::printf("applied %lu commands\n", static_cast<unsigned long>(leader.applied()));
  return 0;
}
