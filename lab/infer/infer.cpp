// infer: an HTTP server whose requests are computed by a device. See README.md.
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/common/http.h"
#include "lab/common/options.h"
#include "lab/common/process.h"
#include "lab/infer/stand_in.h"

namespace {

lab::Options declare_options() {
  lab::Options options("infer",
                       "answers that a device computes, one piece of work after the other");
  options.number("threads", 2, 1, 64, "threads, each with connections of its own");
  options.number("device-us", 1000, 1, 10'000'000, "device time of a request");
  options.text("wait", "spin", "how a thread waits for the device: spin or sleep");
  options.fault("recompute", 10'000'000, "microseconds of device time for what is known already");
  return options;
}

class Model {
 public:
  explicit Model(const lab::Options& options)
      : device_ns_(static_cast<uint64_t>(options.number("device-us")) * 1000),
        again_ns_(static_cast<uint64_t>(options.fault("recompute")) * 1000) {
    if (cuStreamCreate(&stream_, 0) != 0) lab::die_saying("no stream");
  }

  [[gnu::noinline]] void infer_one() {
    standInLaunch(stream_, device_ns_);
    if (again_ns_ > 0) standInLaunch(stream_, again_ns_);
    cuStreamSynchronize(stream_);
    ++answers_;
  }

 private:
  void* stream_ = nullptr;
  uint64_t device_ns_, again_ns_, answers_ = 0;
};

class Worker {
 public:
  explicit Worker(const lab::Options& options)
      : options_(options), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) lab::die("epoll");
  }

  void adopt(int fd) {
    epoll_event event{EPOLLIN, {.fd = fd}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) close(fd);
  }

  void run() {
    Model model(options_);
    for (;;) {
      epoll_event events[16];
      int count = epoll_wait(epoll_, events, 16, -1);
      for (int i = 0; i < count; ++i) serve(events[i].data.fd, model);
    }
  }

 private:
  void serve(int fd, Model& model) {
    char bytes[4096];
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return drop(fd);
    std::string& buffer = buffers_[fd];
    buffer.append(bytes, static_cast<size_t>(got));
    lab::http::Request request;
    for (;;) {
      auto parsed = lab::http::take_request(buffer, request);
      if (parsed == lab::http::Parse::incomplete) return;
      if (parsed == lab::http::Parse::bad) return drop(fd);
      model.infer_one();
      std::string answer = lab::http::make_response(200, "text/plain", "done\n");
      if (write(fd, answer.data(), answer.size()) < 0) return drop(fd);
    }
  }
  void drop(int fd) {
    buffers_.erase(fd);
    close(fd);
  }

  const lab::Options& options_;
  int epoll_;
  std::unordered_map<int, std::string> buffers_;
};

}  // namespace

int main(int argc, char** argv) {
  lab::Options options = declare_options();
  options.parse(argc, argv);
  sigset_t signals = lab::block_signals();
  if (cuInit(0) != 0) lab::die_saying("no device");
  cuCtxSetFlags(options.text("wait") == "sleep" ? 4 : 1);
  std::vector<std::unique_ptr<Worker>> workers;
  for (long i = 0; i < options.number("threads"); ++i) {
    workers.push_back(std::make_unique<Worker>(options));
    std::thread([worker = workers.back().get(), i] {
      lab::name_thread("infer-" + std::to_string(i));
      worker->run();
    }).detach();
  }
  int port = static_cast<int>(options.number("port"));
  int listener = lab::listen_on_loopback(port);
  int ends = signalfd(-1, &signals, SFD_CLOEXEC);
  lab::announce(port);
  for (size_t next = 0;;) {
    pollfd both[]{{listener, POLLIN, 0}, {ends, POLLIN, 0}};
    poll(both, 2, -1);
    if (both[1].revents != 0) _exit(0);
    int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) continue;
    lab::set_nodelay(fd);
    workers[next++ % workers.size()]->adopt(fd);
  }
}
