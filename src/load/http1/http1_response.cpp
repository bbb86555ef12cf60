#include "load/http1/http1_response.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace assay::load {
namespace {

constexpr uint32_t kMaxTrailerBytes = 64 << 10;
constexpr std::string_view kStatusLineStart = "HTTP/1.";
constexpr const char* kNoStatusLine = "the answer does not begin with an HTTP/1 status line";
constexpr int kMaxChunkDigits = 15;  // 2^60 bytes

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool same_ignoring_case(std::string_view text, std::string_view small) {
  return text.size() == small.size() && std::equal(text.begin(), text.end(), small.begin(),
                                                   [](char a, char b) { return lower(a) == b; });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Calls visit with each item of a list by commas; the last one is returned.
template <class Visit>
void for_each_item(std::string_view list, Visit visit) {
  while (true) {
    size_t comma = list.find(',');
    visit(trimmed(list.substr(0, comma)));
    if (comma == list.npos) return;
    list.remove_prefix(comma + 1);
  }
}

// One line without its end, removed from the front; false when there is no whole line.
bool next_line(std::string_view& rest, std::string_view& line) {
  const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), '\n', rest.size());
  if (end == nullptr) return false;
  auto size = static_cast<size_t>(static_cast<const char*>(end) - rest.data());
  line = rest.substr(0, size > 0 && rest[size - 1] == '\r' ? size - 1 : size);
  rest.remove_prefix(size + 1);
  return true;
}

// Where the head ends (behind its empty line), looking from `from`; npos when it does not yet.
size_t head_end(std::string_view text, size_t from) {
  for (size_t at = text.find('\n', from); at != text.npos; at = text.find('\n', at + 1)) {
    if (at + 1 < text.size() && text[at + 1] == '\n') return at + 2;
    if (at + 2 < text.size() && text[at + 1] == '\r' && text[at + 2] == '\n') return at + 3;
  }
  return text.npos;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  char small = lower(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

}  // namespace

void Http1Response::begin(bool to_head) {
  state_ = State::head;
  to_head_ = to_head;
  started_ = false;
  head_.clear();
  fault_ = "";
}

void Http1Response::set_bad(const char* why) {
  state_ = State::bad;
  fault_ = why;
}

Http1Response::Step Http1Response::step() const {
  return state_ == State::done ? Step::done : state_ == State::bad ? Step::bad : Step::more;
}

Http1Response::Step Http1Response::feed(std::string_view& bytes) {
  if (!bytes.empty()) started_ = true;
  while (true) {
    if (state_ == State::head) {
      if (Step taken = take_head(bytes); taken != Step::done) return taken;
      continue;  // the head is in; its body, or after an interim answer the next head
    }
    return take_body(bytes);
  }
}

// `done`: one whole head was taken.
Http1Response::Step Http1Response::take_head(std::string_view& bytes) {
  if (head_.empty()) {
    size_t end = head_end(bytes, 0);
    if (end != bytes.npos && end <= kMaxHeadBytes) {
      std::string_view head = bytes.substr(0, end);
      bytes.remove_prefix(end);
      return parse_head(head);
    }
  }
  size_t before = head_.size();
  size_t taken = std::min(bytes.size(), kMaxHeadBytes + 1 - before);
  head_.append(bytes.substr(0, taken));
  size_t end = head_end(head_, before > 3 ? before - 3 : 0);
  if (end == head_.npos) {
    bytes.remove_prefix(taken);
    if (!kStatusLineStart.starts_with(std::string_view(head_).substr(0, kStatusLineStart.size()))) {
      set_bad(kNoStatusLine);  // not HTTP: do not wait for more
      return Step::bad;
    }
    if (head_.size() <= kMaxHeadBytes) return Step::more;
    set_bad("the head of the answer is longer than 1 MiB");
    return Step::bad;
  }
  bytes.remove_prefix(end - before);
  head_.resize(end);
  Step parsed = parse_head(head_);
  head_.clear();
  return parsed;
}

Http1Response::Step Http1Response::parse_head(std::string_view head) {
  status_ = 0;
  chunked_ = other_coding_ = has_length_ = false;
  length_ = 0;
  std::string_view line;
  if (!next_line(head, line) || !parse_status_line(line)) {
    set_bad(kNoStatusLine);
    return Step::bad;
  }
  while (next_line(head, line) && !line.empty()) {
    if (!parse_header(line)) return Step::bad;
  }
  return choose_body();
}

// "HTTP/1.1 200 OK"
bool Http1Response::parse_status_line(std::string_view line) {
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || line[8] != ' ') return false;
  if (line[7] != '0' && line[7] != '1') return false;
  http10_ = line[7] == '0';
  keep_alive_ = !http10_;
  for (size_t i = 9; i < 12; ++i) {
    if (line[i] < '0' || line[i] > '9') return false;
    status_ = status_ * 10 + (line[i] - '0');
  }
  return status_ >= 100 && (line.size() == 12 || line[12] == ' ');
}

// Only three headers decide where an answer ends; the others are skipped by their first letter.
bool Http1Response::parse_header(std::string_view line) {
  char first = lower(line.front());
  if (first != 'c' && first != 't') return true;
  size_t colon = line.find(':');
  if (colon == line.npos) return true;
  std::string_view name = line.substr(0, colon);
  std::string_view value = trimmed(line.substr(colon + 1));
  if (same_ignoring_case(name, "content-length")) {
    uint64_t length = 0;
    auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), length);
    bool whole = status == std::errc() && end == value.data() + value.size() && !value.empty();
    if (!whole || (has_length_ && length != length_)) {
      set_bad("Content-Length is not one number");
      return false;
    }
    has_length_ = true;
    length_ = length;
  } else if (same_ignoring_case(name, "transfer-encoding")) {
    for_each_item(value, [this](std::string_view coding) {
      chunked_ = same_ignoring_case(coding, "chunked");
      other_coding_ = !chunked_;
    });
  } else if (same_ignoring_case(name, "connection")) {
    for_each_item(value, [this](std::string_view option) {
      if (same_ignoring_case(option, "close")) keep_alive_ = false;
      if (same_ignoring_case(option, "keep-alive") && http10_) keep_alive_ = true;
    });
  }
  return true;
}

Http1Response::Step Http1Response::choose_body() {
  if (status_ == 101) {
    set_bad("the server switched to another protocol");
    return Step::bad;
  }
  if (status_ < 200) {
    state_ = State::head;  // an interim answer: the real one follows
    return Step::done;
  }
  if (to_head_ || status_ == 204 || status_ == 304) {
    state_ = State::done;
  } else if (chunked_) {
    state_ = State::chunk_size;
    length_ = 0;
    has_digit_ = false;
  } else if (other_coding_ || !has_length_) {
    state_ = State::until_close;
    keep_alive_ = false;
  } else {
    state_ = length_ == 0 ? State::done : State::fixed_body;
  }
  return Step::done;
}

void Http1Response::skip(std::string_view& bytes, State next) {
  uint64_t taken = std::min<uint64_t>(length_, bytes.size());
  bytes.remove_prefix(taken);
  length_ -= taken;
  if (length_ == 0) state_ = next;
}

Http1Response::Step Http1Response::take_body(std::string_view& bytes) {
  while (!bytes.empty()) {
    switch (state_) {
      case State::fixed_body:
        skip(bytes, State::done);
        break;
      case State::until_close:
        bytes = {};
        break;
      case State::chunk_size:
      case State::chunk_extension:
        take_chunk_line(bytes);
        break;
      case State::chunk_data:
        skip(bytes, State::chunk_end);
        break;
      case State::chunk_end: {
        char c = bytes.front();
        bytes.remove_prefix(1);
        if (c == '\n') {
          state_ = State::chunk_size;
          has_digit_ = false;
        } else if (c != '\r') {
          set_bad("a chunk is longer than its size");
        }
        break;
      }
      case State::trailers:
        take_trailers(bytes);
        break;
      case State::head:
      case State::done:
      case State::bad:
        return step();
    }
  }
  return step();
}

void Http1Response::take_chunk_line(std::string_view& bytes) {
  while (!bytes.empty()) {
    char c = bytes.front();
    bytes.remove_prefix(1);
    if (c == '\n') {
      if (!has_digit_) return set_bad("a chunk has no size");
      line_empty_ = true;
      trailer_bytes_ = 0;
      state_ = length_ == 0 ? State::trailers : State::chunk_data;
      return;
    }
    if (state_ == State::chunk_extension) continue;
    int digit = hex_digit(c);
    if (digit < 0) {
      if (c != ';' && c != '\r' && c != ' ' && c != '\t') return set_bad("a chunk has no size");
      state_ = State::chunk_extension;
      continue;
    }
    if (length_ >> (4 * kMaxChunkDigits) != 0) return set_bad("a chunk is too long");
    length_ = length_ * 16 + static_cast<uint64_t>(digit);
    has_digit_ = true;
  }
}

void Http1Response::take_trailers(std::string_view& bytes) {
  while (!bytes.empty()) {
    char c = bytes.front();
    bytes.remove_prefix(1);
    if (++trailer_bytes_ > kMaxTrailerBytes) return set_bad("the trailers are longer than 64 KiB");
    if (c == '\n') {
      if (line_empty_) {
        state_ = State::done;
        return;
      }
      line_empty_ = true;
    } else if (c != '\r') {
      line_empty_ = false;
    }
  }
}

Http1Response::Step Http1Response::end_of_stream() {
  if (state_ == State::until_close) state_ = State::done;
  if (state_ != State::done && state_ != State::bad) set_bad("the answer ended in its middle");
  return step();
}

}  // namespace assay::load
