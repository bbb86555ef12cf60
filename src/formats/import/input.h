// Input: the bytes of a foreign file, mapped, with its name for errors.
//
// Until load() only a first block of a stream or of packed bytes is looked at, so that what no
// reader takes is refused without being read or unpacked whole. Failures of readers name the file
// and the offset: fail_at(). Offsets of gzipped files count in the unpacked bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::formats {

class Input {
 public:
  static Result<Input> open(const std::string& path);
  static Input of_bytes(std::string name, std::string bytes);
  Input(Input&& other) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  const std::string& name() const { return name_; }
  std::string_view bytes() const { return mapped_.empty() ? std::string_view(owned_) : mapped_; }
  bool is_mapped() const { return !mapped_.empty(); }
  // The first bytes, unpacked: at least kHeadBytes where there are as many. Valid until load().
  Result<std::string_view> head();
  // Reads a stream to its end, and replaces gzipped bytes by what is in them: then bytes() has
  // everything. Failures: more than `most_bytes`.
  Result<void> load(size_t most_bytes = kMostBytes);

  static constexpr size_t kHeadBytes = size_t{1} << 20;
  static constexpr size_t kMostBytes = size_t{4} << 30;

  template <class... Args>
  std::unexpected<Error> fail_at(size_t offset, fmt::format_string<Args...> format,
                                 Args&&... args) const {
    return fail("{}: {} at offset {}", name_, fmt::format(format, std::forward<Args>(args)...),
                offset);
  }

 private:
  Input() = default;
  void unmap();

  std::string name_;
  std::string_view mapped_;
  std::string owned_;
  std::string unpacked_head_;
  UniqueFd rest_;  // of a stream: where the bytes after `owned_` come from
};

// A thread that loads the pages of a mapped file a little before the reader needs them. For a file
// that is read from its beginning to its end. It does nothing for bytes that are no mapped file. It
// is at most kAheadBytes ahead, so that a file larger than the memory can be read.
class ReadAhead {
 public:
  explicit ReadAhead(const Input& input);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();
  // The reader has come so far.
  void reached(size_t offset) {
    if (offset - told_ < kStepBytes) return;
    told_ = offset;
    at_ = offset;
    at_.notify_one();
  }

 private:
  static constexpr size_t kStepBytes = size_t{1} << 20, kAheadBytes = size_t{64} << 20;
  void touch_pages(std::string_view bytes);

  size_t told_ = 0;
  std::atomic<size_t> at_ = 0;
  std::atomic<bool> ended_ = false;
  std::jthread thread_;
};

// One line after another, without their ends; `offset` is where the line begins.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  bool next(std::string_view& line) {
    if (at_ >= text_.size()) return false;
    offset_ = at_;
    size_t end = text_.find('\n', at_);
    if (end == text_.npos) end = text_.size();
    line = text_.substr(at_, end - at_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at_ = end + 1;
    return true;
  }
  size_t offset() const { return offset_; }
  size_t end_offset() const { return at_ < text_.size() ? at_ : text_.size(); }

 private:
  std::string_view text_;
  size_t at_ = 0;
  size_t offset_ = 0;
};

}  // namespace assay::formats
