// Http1Response: where one HTTP/1 answer ends, and what its status is.
//
// Sans-IO: bytes go in as they come from the socket, in pieces of any size; what belongs to this
// answer is consumed. Knows Content-Length, chunked bodies with trailers, bodies that last until
// the peer closes, interim (1xx) answers, and answers without a body. Keeps no body. Hostile bytes
// end in `bad` with the reason; the head may be kMaxHeadBytes long. Not thread-safe. RFC 9112.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::load {

class Http1Response {
 public:
  static constexpr size_t kMaxHeadBytes = size_t{1} << 20;

  enum class Step : uint8_t { more, done, bad };

  // Before each answer. An answer to HEAD has no body, whatever its headers say.
  void begin(bool to_head);
  // Takes from the front of `bytes` and removes what it took. `done`: the rest does not belong to
  // this answer.
  Step feed(std::string_view& bytes);
  // The peer closed: done when the body was to last until then, bad otherwise.
  Step end_of_stream();

  bool started() const { return started_; }  // at least one byte of it came
  int status() const { return status_; }
  bool keep_alive() const { return keep_alive_; }
  const char* fault() const { return fault_; }

 private:
  enum class State : uint8_t {
    head,
    fixed_body,
    until_close,
    chunk_size,
    chunk_extension,
    chunk_data,
    chunk_end,
    trailers,
    done,
    bad
  };
  Step take_head(std::string_view& bytes);
  Step parse_head(std::string_view head);
  bool parse_status_line(std::string_view line);
  bool parse_header(std::string_view line);
  Step choose_body();
  Step take_body(std::string_view& bytes);
  void take_chunk_line(std::string_view& bytes);
  void take_trailers(std::string_view& bytes);
  void skip(std::string_view& bytes, State next);
  void set_bad(const char* why);
  Step step() const;

  State state_ = State::head;
  bool to_head_ = false;
  bool started_ = false;
  bool keep_alive_ = true;
  bool http10_ = false;
  bool chunked_ = false;
  bool other_coding_ = false;
  bool has_length_ = false;
  bool has_digit_ = false;  // of a chunk's size
  bool line_empty_ = true;  // of the trailers
  uint32_t trailer_bytes_ = 0;
  int status_ = 0;
  uint64_t length_ = 0;  // what is left of the body or the chunk
  std::string head_;     // a head that came in pieces
  const char* fault_ = "";
};

}  // namespace assay::load
