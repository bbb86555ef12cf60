#include "lab/replica/follower.h"

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/common/process.h"
#include "lab/replica/frame.h"
#include "lab/replica/log_file.h"

namespace lab::replica {
namespace {

class Follower {
 public:
  Follower(const Options& options, const std::string& log_path)
      : log_(log_path, options.text("nameless-dir"), options.fault("sync")),
        last_index_(log_.take_commands().size()),
        slow_us_(options.fault("slow")),
        flush_(options.fault("flush")) {}

  // Follows the leader at the other end until the connection ends.
  void follow(int fd) {
    set_nodelay(fd);
    std::string out;
    FrameWriter(out, Type::hello).number(last_index_);
    if (!send_all(fd, out)) return;
    FrameReader reader(fd);
    std::vector<std::string> commands;
    for (Frame frame; reader.next(frame);) {
      if (frame.type != Type::append || !take(frame, commands)) return;
      bool batch_is_over = !reader.has_whole_frame() || flush_ > 0;
      if (batch_is_over && !keep_and_acknowledge(fd, commands)) return;
    }
  }

 private:
  // False: the leader sent what does not follow our last command; it must begin again.
  bool take(const Frame& frame, std::vector<std::string>& commands) {
    Body body(frame.body);
    uint64_t index = body.number();
    body.number();  // how far the leader has committed; followers serve no reads
    if (body.bad() || index != last_index_ + commands.size() + 1) return false;
    commands.emplace_back(body.rest());
    return true;
  }

  bool keep_and_acknowledge(int fd, std::vector<std::string>& commands) {
    std::vector<std::string_view> views(commands.begin(), commands.end());
    log_.append(views);
    last_index_ += commands.size();
    commands.clear();
    if (slow_us_ > 0) lag_behind();
    std::string out;
    FrameWriter(out, Type::ack).number(last_index_);
    return send_all(fd, out);
  }

  [[gnu::noinline]] void lag_behind() {
    timespec pause{slow_us_ / 1'000'000, slow_us_ % 1'000'000 * 1000};
    nanosleep(&pause, nullptr);
  }

  LogFile log_;
  uint64_t last_index_;
  long slow_us_, flush_;
};

}  // namespace

int run_follower(const Options& options, int id, int listener, const std::string& log_path) {
  name_thread("follower-" + std::to_string(id));
  Follower follower(options, log_path);
  for (;;) {
    pollfd waiting{listener, POLLIN, 0};
    if (poll(&waiting, 1, -1) < 0 && errno != EINTR) die("poll");
    int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    follower.follow(fd);
    close(fd);
  }
}

}  // namespace lab::replica
