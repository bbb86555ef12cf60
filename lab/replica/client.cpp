// replica_client: load for replica, and the check that acknowledged puts are kept.
//
// --streams connections with --window unanswered puts on each, for --for seconds; prints one JSON
// object with throughput and latency (exact: every latency is kept). Keys are new each time, or
// reused when --keys says how many there are. --acked FILE writes down every key whose put was
// acknowledged; --verify FILE reads each of them back. Exit status 1: the server was not reachable,
// the connection broke, or a key is missing.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/common/options.h"
#include "lab/common/process.h"
#include "lab/replica/frame.h"

namespace {

using Clock = std::chrono::steady_clock;
using lab::replica::Body;
using lab::replica::Frame;
using lab::replica::FrameReader;
using lab::replica::FrameWriter;
using lab::replica::Type;

constexpr size_t kVerifyTogether = 256;

struct Stream {
  int fd = -1;
  std::unique_ptr<FrameReader> reader;
  uint64_t next_seq = 1;
  std::unordered_map<uint64_t, Clock::time_point> under_way;
};

class Load {
 public:
  explicit Load(const lab::Options& options)
      : options_(options), value_(static_cast<size_t>(options.number("value-bytes")), 'v') {
    if (!options.text("acked").empty()) acked_.open(options.text("acked"));
    std::srand(static_cast<unsigned>(getpid()));
    run_name_ = std::to_string(std::rand());
    for (long i = 0; i < options.number("streams"); ++i) {
      Stream stream;
      stream.fd = lab::replica::connect_to_loopback(static_cast<int>(options.number("port")));
      if (stream.fd < 0)
        lab::die("cannot connect to 127.0.0.1:" + std::to_string(options.number("port")));
      stream.reader = std::make_unique<FrameReader>(stream.fd);
      streams_.push_back(std::move(stream));
    }
  }

  void run() {
    begin_ = Clock::now();
    Clock::time_point end = begin_ + std::chrono::seconds(options_.number("for"));
    for (size_t i = 0; i < streams_.size(); ++i) fill_window(i);
    std::vector<pollfd> fds;
    for (const Stream& stream : streams_) fds.push_back({stream.fd, POLLIN, 0});
    while (Clock::now() < end && !broken_) {
      int ready = poll(fds.data(), fds.size(), 100);
      for (size_t i = 0; ready > 0 && i < fds.size(); ++i) {
        if (fds[i].revents == 0) continue;
        take_replies(i);
        fill_window(i);
      }
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - begin_).count();
    for (const Stream& stream : streams_) close(stream.fd);
  }

  void print() {
    std::ranges::sort(latencies_ns_);
    auto at = [this](double share) {
      if (latencies_ns_.empty()) return 0L;
      return latencies_ns_[static_cast<size_t>(share *
                                               static_cast<double>(latencies_ns_.size() - 1))];
    };
    std::printf(
        "{\"requests\":%zu,\"seconds\":%.3f,\"throughput\":%.1f,\"errors\":%d,"
        "\"latency\":{\"p50_ns\":%ld,\"p90_ns\":%ld,\"p99_ns\":%ld,\"max_ns\":%ld}}\n",
        latencies_ns_.size(), seconds_, static_cast<double>(latencies_ns_.size()) / seconds_,
        broken_ ? 1 : 0, at(0.5), at(0.9), at(0.99), at(1));
  }
  bool broken() const { return broken_; }

 private:
  std::string key_of(size_t stream, uint64_t seq) const {
    if (long keys = options_.number("keys"); keys > 0) {
      return "key" + std::to_string((seq * 31 + stream) % static_cast<uint64_t>(keys));
    }
    return run_name_ + "-" + std::to_string(stream) + "-" + std::to_string(seq);
  }

  void fill_window(size_t index) {
    Stream& stream = streams_[index];
    std::string out;
    while (stream.under_way.size() < static_cast<size_t>(options_.number("window"))) {
      uint64_t seq = stream.next_seq++;
      FrameWriter(out, Type::put).number(seq).text(key_of(index, seq)).rest(value_);
      stream.under_way[seq] = Clock::now();
    }
    if (!lab::replica::send_all(stream.fd, out)) broken_ = true;
  }

  void take_replies(size_t index) {
    Stream& stream = streams_[index];
    Frame frame;
    do {
      if (!stream.reader->next(frame) || frame.type != Type::reply) {
        broken_ = true;
        return;
      }
      uint64_t seq = Body(frame.body).number();
      auto found = stream.under_way.find(seq);
      if (found == stream.under_way.end()) continue;
      latencies_ns_.push_back((Clock::now() - found->second).count());
      stream.under_way.erase(found);
      if (acked_.is_open()) acked_ << key_of(index, seq) << '\n';
    } while (stream.reader->has_whole_frame());
  }

  const lab::Options& options_;
  std::string value_, run_name_;
  std::ofstream acked_;
  std::vector<Stream> streams_;
  std::vector<long> latencies_ns_;
  Clock::time_point begin_;
  double seconds_ = 0;
  bool broken_ = false;
};

int verify(const lab::Options& options) {
  int fd = lab::replica::connect_to_loopback(static_cast<int>(options.number("port")));
  if (fd < 0) lab::die("cannot connect to 127.0.0.1:" + std::to_string(options.number("port")));
  std::ifstream file(options.text("verify"));
  if (!file) lab::die("cannot read " + options.text("verify"));
  std::vector<std::string> keys;
  for (std::string key; std::getline(file, key);) keys.push_back(key);
  FrameReader reader(fd);
  size_t missing = 0;
  for (size_t begin = 0; begin < keys.size(); begin += kVerifyTogether) {
    size_t end = std::min(keys.size(), begin + kVerifyTogether);
    std::string out;
    for (size_t i = begin; i < end; ++i) FrameWriter(out, Type::get).number(i).text(keys[i]);
    if (!lab::replica::send_all(fd, out)) lab::die_saying("the connection broke");
    for (size_t i = begin; i < end; ++i) {
      Frame frame;
      if (!reader.next(frame)) lab::die_saying("the connection broke");
      Body body(frame.body);
      uint64_t seq = body.number();
      if (body.byte() == 1) continue;
      if (++missing <= 10)
        std::fprintf(stderr, "replica_client: %s is missing\n", keys.at(seq).c_str());
    }
  }
  std::printf("{\"verified\":%lu,\"missing\":%lu}\n", static_cast<unsigned long>(keys.size()),
              static_cast<unsigned long>(missing));
  close(fd);
  return missing == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  lab::Options options("replica_client", "puts for replica, and a check of what it acknowledged");
  options.number("streams", 4, 1, 1000, "connections");
  options.number("window", 16, 1, 100'000, "puts under way on each");
  options.number("for", 5, 1, 86'400, "seconds");
  options.number("keys", 0, 0, 1'000'000'000, "how many keys there are; 0: each put has its own");
  options.number("value-bytes", 32, 0, 65'536, "size of a value");
  options.text("acked", "", "file for the keys that were acknowledged");
  options.text("verify", "", "file of keys to read back, instead of load");
  options.parse(argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  if (!options.text("verify").empty()) return verify(options);
  Load load(options);
  load.run();
  load.print();
  return load.broken() ? 1 : 0;
}
