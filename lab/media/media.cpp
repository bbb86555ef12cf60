// media: an HTTP server in front of worker processes that "infer": one main process with IO
// threads, N workers, shared-memory rings between them. See README.md.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/common/options.h"
#include "lab/common/process.h"
#include "lab/media/channel.h"
#include "lab/media/front.h"
#include "lab/media/request_log.h"
#include "lab/media/scheduler.h"
#include "lab/media/worker.h"

namespace {

lab::Options declare_options() {
  lab::Options options("media", "chat completions over HTTP from mock inference workers");
  options.number("threads", 4, 1, 64, "IO threads of the main process");
  options.number("workers", 2, 1, 16, "worker processes");
  options.text("token", "your-secret-key", "what Authorization: Bearer must carry");
  options.number("token-work", 2000, 0, 100'000'000, "steps of arithmetic per token");
  options.number("prompt-work", 2000, 0, 100'000'000, "steps of arithmetic per prompt");
  options.number("pause-us", 0, 0, 10'000'000, "microseconds that admission of a prompt takes");
  options.number("timeout-ms", 10'000, 10, 600'000, "when a silent worker becomes a 504");
  options.text("dir", "/var/tmp", "where the request log lives");
  options.number("worker", -1, -1, 15, "internal: be this worker");
  options.number("channel-fd", -1, -1, 1 << 20, "internal: the worker's shared memory");
  options.fault("poll", 100, "worker: thousands of try_pop before it sleeps; 100 never sleeps");
  options.fault("clock", 10'000'000, "worker: clock_gettime calls per token");
  options.fault("params", 100'000, "worker: SamplingParams of so many words built per token");
  options.fault("device", 10'000'000, "worker: microseconds of sleep in every step");
  options.fault("hang", 1'000'000'000, "worker 0 hangs after so many requests");
  options.fault("lock", 100, "percent of prompt work and pause under the scheduler's mutex");
  options.fault("log", 1000, "log lines per request, each synced to the disk");
  return options;
}

struct Workers {
  std::vector<pid_t> pids;
  std::vector<lab::media::Channel*> channels;
};

Workers start_workers(const lab::Options& options) {
  Workers workers;
  for (long i = 0; i < options.number("workers"); ++i) {
    int memory = lab::media::create_channel_memory();
    workers.channels.push_back(lab::media::construct_channel(memory));
    std::vector<std::string> arguments = options.arguments();
    arguments.insert(arguments.end(),
                     {"--worker", std::to_string(i), "--channel-fd", std::to_string(memory)});
    workers.pids.push_back(lab::start_self(arguments, memory));
    close(memory);
  }
  return workers;
}

// Names the workers that ended; from now on they get no requests.
void reap(Workers& workers, lab::media::DecodeScheduler& scheduler) {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (size_t i = 0; i < workers.pids.size(); ++i) {
      if (workers.pids[i] != pid) continue;
      std::fprintf(stderr, "media: worker %zu (pid %d) ended\n", i, pid);
      scheduler.worker_died(i);
      workers.pids[i] = -1;
    }
  }
}

void serve_until_signal(int listener, const sigset_t& signals, Workers& workers,
                        lab::media::DecodeScheduler& scheduler, lab::media::Front& front) {
  int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0) lab::die("signalfd");
  pollfd fds[2] = {{signal_fd, POLLIN, 0}, {listener, POLLIN, 0}};
  for (;;) {
    if (poll(fds, 2, -1) < 0 && errno != EINTR) lab::die("poll");
    signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGCHLD) {
        reap(workers, scheduler);
      } else {
        close(signal_fd);
        return;
      }
    }
    for (int fd; (fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      lab::set_nodelay(fd);
      front.adopt(fd);
    }
  }
}

void stop(const Workers& workers) {
  for (pid_t pid : workers.pids) {
    if (pid > 0) kill(pid, SIGTERM);
  }
  for (pid_t pid : workers.pids) {
    if (pid > 0) waitpid(pid, nullptr, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  lab::Options options = declare_options();
  options.parse(argc, argv);
  if (long number = options.number("worker"); number >= 0) {
    auto* channel = lab::media::attach_channel(static_cast<int>(options.number("channel-fd")));
    return lab::media::run_worker(options, static_cast<int>(number), *channel);
  }
  sigset_t signals = lab::block_signals();
  int port = static_cast<int>(options.number("port"));
  int listener = lab::listen_on_loopback(port);
  Workers workers = start_workers(options);
  uint64_t served = 0;
  {
    lab::media::RequestLog log(options.text("dir"), options.fault("log"));
    lab::media::DecodeScheduler scheduler(options, workers.channels);
    lab::media::Front front(options, scheduler, log);
    scheduler.start([&front](const lab::media::Response& piece) { front.deliver(piece); });
    lab::announce(port);
    serve_until_signal(listener, signals, workers, scheduler, front);
    close(listener);
    stop(workers);
    served = front.served();
    scheduler.stop();
  }
  std::printf("served %lu requests\n", static_cast<unsigned long>(served));
  return 0;
}
