// Leader: orders the clients' commands, copies them to the followers, answers when a majority has
// them.
//
// Threads: one per client stream reads commands and makes their descriptors; `log-writer` appends
// them to the leader's own log; per follower one thread sends and one takes acknowledgements;
// `applier` applies what is committed to the state machine and sends the replies. A put is answered
// only after its command is in the logs of two of three replicas, the leader's among them. run()
// returns when a signal comes. The leader never changes; when it ends, the group stops.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "lab/common/options.h"
#include "lab/replica/descriptors.h"
#include "lab/replica/frame.h"
#include "lab/replica/log_file.h"

namespace lab::replica {

class Leader {
 public:
  Leader(const Options& options, const std::string& log_path, std::array<int, 2> follower_ports);
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  void run(int listener, const sigset_t& signals);
  uint64_t applied() const { return applied_count_; }

 private:
  struct Client {
    int fd = -1;
    uint64_t id = 0;
    std::mutex mutex;  // one writer at a time
    ~Client();
  };
  struct Entry {
    std::string command;
    std::shared_ptr<Client> client;  // none: read from a log, no client waits for a reply
    uint64_t seq = 0;
  };
  struct Follower {
    int port = 0;
    int fd = -1;           // guarded by mutex_
    uint64_t matched = 0;  // guarded by mutex_
    std::thread sender;
  };

  void serve(const std::shared_ptr<Client>& client);
  bool take_command(const std::shared_ptr<Client>& client, const Frame& frame,
                    std::vector<Entry>& batch);
  void answer_get(Client& client, uint64_t seq, const std::string& key);
  void enqueue(std::vector<Entry>& batch);
  void write_log();
  void feed_follower(Follower& follower);
  void send_entries(Follower& follower, int fd, uint64_t next);
  void take_acks(Follower& follower, int fd, FrameReader& reader);
  void advance_commit();  // mutex_ is held
  void apply_committed();
  void apply(const std::string& command);
  void reply_to(std::vector<Entry>& done);
  void stop();

  const long flush_;
  Descriptors descriptors_;
  LogFile log_;
  std::mutex mutex_;
  std::condition_variable to_write_, to_send_, to_apply_, to_read_;
  std::deque<Entry> entries_;  // guarded by mutex_; entry i has index i + 1
  uint64_t recovered_ = 0;     // in the log at the start; does not change
  uint64_t written_ = 0;       // guarded by mutex_: in the leader's own log
  uint64_t committed_ = 0;     // guarded by mutex_
  bool stopping_ = false;      // guarded by mutex_
  std::array<Follower, 2> followers_;
  std::shared_mutex state_mutex_;
  std::unordered_map<std::string, std::string> state_;  // guarded by state_mutex_
  std::atomic<uint64_t> applied_count_ = 0;
  std::vector<std::shared_ptr<Client>> clients_;  // run()'s own
  std::vector<std::thread> threads_;
};

}  // namespace lab::replica
