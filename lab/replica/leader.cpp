#include "lab/replica/leader.h"

#include <algorithm>

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/common/process.h"

namespace lab::replica {

namespace {
constexpr size_t kMostPerBatch = 256;
constexpr auto kReconnectPause = std::chrono::milliseconds(50);
}  // namespace

Leader::Client::~Client() {
  close(fd);
}

Leader::Leader(const Options& options, const std::string& log_path,
               std::array<int, 2> follower_ports)
    : flush_(options.fault("flush")),
      descriptors_(options),
      log_(log_path, options.text("nameless-dir"), options.fault("sync")) {
  for (std::string& command : log_.take_commands()) entries_.push_back({std::move(command), {}, 0});
  recovered_ = written_ = entries_.size();
  for (size_t i = 0; i < followers_.size(); ++i) followers_[i].port = follower_ports[i];
}

Leader::~Leader() {
  stop();
}

void Leader::run(int listener, const sigset_t& signals) {
  threads_.emplace_back([this] { write_log(); });
  threads_.emplace_back([this] { apply_committed(); });
  for (Follower& follower : followers_) {
    follower.sender = std::thread([this, &follower] { feed_follower(follower); });
  }
  int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0) die("signalfd");
  pollfd fds[2] = {{signal_fd, POLLIN, 0}, {listener, POLLIN, 0}};
  for (uint64_t id = 1; !(fds[0].revents & POLLIN); ++id) {
    if (poll(fds, 2, -1) < 0 && errno != EINTR) die("poll");
    int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    set_nodelay(fd);
    auto client = std::make_shared<Client>();
    client->fd = fd;
    client->id = id;
    clients_.push_back(client);
    threads_.emplace_back([this, client] { serve(client); });
  }
  close(signal_fd);
  stop();
}

void Leader::stop() {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    for (Follower& follower : followers_) {
      if (follower.fd >= 0) shutdown(follower.fd, SHUT_RDWR);
    }
  }
  for (auto& client : clients_) shutdown(client->fd, SHUT_RDWR);
  to_write_.notify_all();
  to_send_.notify_all();
  to_apply_.notify_all();
  to_read_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  for (Follower& follower : followers_) {
    if (follower.sender.joinable()) follower.sender.join();
  }
}

// One client stream: commands that arrived together are passed on together.
void Leader::serve(const std::shared_ptr<Client>& client) {
  name_thread("stream-" + std::to_string(client->id));
  FrameReader reader(client->fd);
  std::vector<Entry> batch;
  for (Frame frame; reader.next(frame);) {
    if (!take_command(client, frame, batch)) break;
    if (!reader.has_whole_frame() || batch.size() >= kMostPerBatch || flush_ > 0) enqueue(batch);
  }
  shutdown(client->fd, SHUT_RDWR);
}

bool Leader::take_command(const std::shared_ptr<Client>& client, const Frame& frame,
                          std::vector<Entry>& batch) {
  Body body(frame.body);
  uint64_t seq = body.number();
  std::string_view key = body.text();
  if (body.bad()) return false;
  if (frame.type == Type::get) {
    answer_get(*client, seq, std::string(key));
    return true;
  }
  if (frame.type != Type::put) return false;
  descriptors_.add(client->id, seq);
  batch.push_back({std::string(frame.body.substr(sizeof seq)), client, seq});
  return true;
}

// Commands in the log at the start may have been acknowledged before a restart: reads wait until
// they are applied again.
void Leader::answer_get(Client& client, uint64_t seq, const std::string& key) {
  {
    std::unique_lock lock(mutex_);
    to_read_.wait(lock, [this] { return stopping_ || applied_count_ >= recovered_; });
  }
  std::string out;
  {
    std::shared_lock lock(state_mutex_);
    auto found = state_.find(key);
    bool there = found != state_.end();
    FrameWriter(out, Type::reply).number(seq).byte(there).rest(there ? found->second : "");
  }
  std::lock_guard lock(client.mutex);
  send_all(client.fd, out);
}

void Leader::enqueue(std::vector<Entry>& batch) {
  if (batch.empty()) return;
  {
    std::lock_guard lock(mutex_);
    for (Entry& entry : batch) entries_.push_back(std::move(entry));
  }
  batch.clear();
  to_write_.notify_one();
}

void Leader::write_log() {
  name_thread("log-writer");
  for (;;) {
    std::vector<std::string_view> commands;  // a deque never moves what it holds
    {
      std::unique_lock lock(mutex_);
      to_write_.wait(lock, [this] { return stopping_ || entries_.size() > written_; });
      if (stopping_) return;
      size_t end = std::min(entries_.size(), written_ + kMostPerBatch);
      for (size_t i = written_; i < end; ++i) commands.push_back(entries_[i].command);
    }
    log_.append(commands);
    {
      std::lock_guard lock(mutex_);
      written_ += commands.size();
      advance_commit();
    }
    to_send_.notify_all();
  }
}

// One follower: connects, learns its last index, sends the commands it lacks; starts again when the
// connection ends.
void Leader::feed_follower(Follower& follower) {
  name_thread("send-" + std::to_string(follower.port));
  for (;;) {
    int fd = connect_to_loopback(follower.port);
    {
      std::unique_lock lock(mutex_);
      if (stopping_) {
        if (fd >= 0) close(fd);
        return;
      }
      follower.fd = fd;
      if (fd < 0) {
        to_send_.wait_for(lock, kReconnectPause);
        continue;
      }
    }
    FrameReader reader(fd);
    Frame frame;
    if (reader.next(frame) && frame.type == Type::hello) {
      uint64_t has = Body(frame.body).number();
      {
        std::lock_guard lock(mutex_);
        if (has > written_) die_saying("a follower has commands that the leader's log lacks");
        follower.matched = has;
        advance_commit();
      }
      std::thread acks([this, &follower, fd, &reader] { take_acks(follower, fd, reader); });
      send_entries(follower, fd, has + 1);
      shutdown(fd, SHUT_RDWR);
      acks.join();
    }
    std::unique_lock lock(mutex_);
    follower.fd = -1;
    follower.matched = 0;
    close(fd);
    to_send_.wait_for(lock, kReconnectPause, [this] { return stopping_; });
  }
}

void Leader::send_entries(Follower& follower, int fd, uint64_t next) {
  for (;;) {
    std::vector<std::string> frames(1);
    {
      std::unique_lock lock(mutex_);
      to_send_.wait(lock, [&] { return stopping_ || follower.fd < 0 || written_ >= next; });
      if (stopping_ || follower.fd < 0) return;
      uint64_t end = std::min(written_, next + kMostPerBatch - 1);
      for (; next <= end; ++next) {
        if (flush_ > 0 && !frames.back().empty()) frames.emplace_back();
        FrameWriter(frames.back(), Type::append)
            .number(next)
            .number(committed_)
            .rest(entries_[next - 1].command);
      }
    }
    for (const std::string& bytes : frames) {
      if (!send_all(fd, bytes)) return;
    }
  }
}

void Leader::take_acks(Follower& follower, int fd, FrameReader& reader) {
  name_thread("acks-" + std::to_string(follower.port));
  for (Frame frame; reader.next(frame) && frame.type == Type::ack;) {
    uint64_t has = Body(frame.body).number();
    std::lock_guard lock(mutex_);
    follower.matched = std::max(follower.matched, has);
    advance_commit();
  }
  std::lock_guard lock(mutex_);
  if (follower.fd == fd) follower.fd = -1;
  to_send_.notify_all();
}

// Committed: in the leader's own log and in one follower's, which is two of three.
void Leader::advance_commit() {
  uint64_t followers = std::max(followers_[0].matched, followers_[1].matched);
  uint64_t now = std::min(written_, followers);
  if (now <= committed_) return;
  committed_ = now;
  to_apply_.notify_one();
}

void Leader::apply_committed() {
  name_thread("applier");
  for (uint64_t applied = 0;;) {
    std::vector<Entry> done;
    {
      std::unique_lock lock(mutex_);
      to_apply_.wait(lock, [&] { return stopping_ || committed_ > applied; });
      if (stopping_) return;
      uint64_t end = std::min<uint64_t>(committed_, applied + kMostPerBatch);
      for (uint64_t i = applied; i < end; ++i) done.push_back(entries_[i]);
      // The reply is ours now; the entry stays for followers that come later.
      for (uint64_t i = applied; i < end; ++i) entries_[i].client.reset();
      applied = end;
    }
    {
      std::unique_lock lock(state_mutex_);
      for (const Entry& entry : done) apply(entry.command);
    }
    {
      std::lock_guard lock(mutex_);
      applied_count_ += done.size();
    }
    to_read_.notify_all();
    reply_to(done);
  }
}

void Leader::apply(const std::string& command) {
  Body body(command);
  std::string_view key = body.text();
  if (!body.bad()) state_[std::string(key)] = body.rest();
}

void Leader::reply_to(std::vector<Entry>& done) {
  std::unordered_map<Client*, std::string> out;
  for (Entry& entry : done) {
    if (!entry.client) continue;
    descriptors_.remove(entry.client->id, entry.seq);
    std::string& bytes = out[entry.client.get()];
    FrameWriter(bytes, Type::reply).number(entry.seq).byte(1).rest("");
    if (flush_ == 0) continue;
    std::lock_guard lock(entry.client->mutex);
    send_all(entry.client->fd, bytes);
    bytes.clear();
  }
  for (auto& [client, bytes] : out) {
    std::lock_guard lock(client->mutex);
    send_all(client->fd, bytes);
  }
}

}  // namespace lab::replica
