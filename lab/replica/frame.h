// Frames: the messages between clients and replicas. A 4-byte length, a type, a body.
//
// FrameReader takes whole frames from a blocking socket and knows whether more are already there,
// so that a reader can answer a batch at once. Body is read with bounds checks: a body too short
// makes the reader `bad`, never a read beyond its end. Failures: end of stream, an error or a frame
// beyond 1 MB ends the stream of frames.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lab::replica {

inline constexpr uint32_t kMaxFrameBytes = 1 << 20;

enum class Type : uint8_t {
  put = 'P',     // client: u64 seq, string key, rest value
  get = 'G',     // client: u64 seq, string key
  reply = 'R',   // u64 seq, u8 found, rest value
  hello = 'H',   // follower: u64 last index it has
  append = 'A',  // leader: u64 index, u64 committed, rest command
  ack = 'K',     // follower: u64 last index it has
};

// Builds frames at the end of a string.
class FrameWriter {
 public:
  FrameWriter(std::string& out, Type type);
  ~FrameWriter();  // fills the length in
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;
  FrameWriter& number(uint64_t value);
  FrameWriter& byte(uint8_t value);
  FrameWriter& text(std::string_view value);  // with its length
  FrameWriter& rest(std::string_view value);  // to the end of the frame

 private:
  std::string& out_;
  size_t start_;
};

// Reads a frame's body.
class Body {
 public:
  explicit Body(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number();
  uint8_t byte();
  std::string_view text();
  std::string_view rest() const { return bytes_; }
  bool bad() const { return bad_; }

 private:
  std::string_view take(size_t count);
  std::string_view bytes_;
  bool bad_ = false;
};

struct Frame {
  Type type;
  std::string_view body;  // valid until the next call of next()
};

class FrameReader {
 public:
  explicit FrameReader(int fd) : fd_(fd) {}
  bool next(Frame& frame);       // waits; false: the stream is over
  bool has_whole_frame() const;  // next() would not wait

 private:
  int fd_;
  std::string buffer_;
  size_t begin_ = 0;
};

bool send_all(int fd, std::string_view bytes);
int connect_to_loopback(int port);  // -1: not possible

}  // namespace lab::replica
