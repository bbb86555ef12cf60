// Input: the bytes of a foreign file, copied into memory, with its name for errors.
//
// A file is read and not mapped: whoever may write to it could cut it, and a mapping of it would end
// its reader with SIGBUS. What is too large for memory is copied into a file of our own without a
// name, which is mapped. Until load() only a first block is looked at, so that what no reader takes
// is refused without being read or unpacked whole. Failures of readers name the file
// and the offset: fail_at(). Offsets of gzipped files count in the unpacked bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "formats/import/file_copy.h"

namespace assay::formats {

class Input {
 public:
  static Result<Input> open(const std::string& path);
  static Input of_bytes(std::string name, std::string bytes);
  Input(Input&& other) noexcept = default;
  Input& operator=(Input&&) = delete;

  const std::string& name() const { return name_; }
  std::string_view bytes() const { return copy_ ? copy_->bytes() : std::string_view(owned_); }
  // The first bytes, unpacked: at least kHeadBytes where there are as many. Valid until load().
  Result<std::string_view> head();
  // Reads a file or a stream to its end, and replaces gzipped bytes by what is in them: then bytes() has
  // everything. Failures: more than `most_bytes`.
  Result<void> load(size_t most_bytes = kMostBytes);

  static constexpr size_t kHeadBytes = size_t{1} << 20;
  static constexpr size_t kMostBytes = size_t{4} << 30;
  // Of a file that is not packed, what is copied into memory; more goes into a file of our own.
  static constexpr size_t kMostInMemory = size_t{1} << 30;

  template <class... Args>
  std::unexpected<Error> fail_at(size_t offset, fmt::format_string<Args...> format,
                                 Args&&... args) const {
    return fail("{}: {} at offset {}", name_, fmt::format(format, std::forward<Args>(args)...),
                offset);
  }

 private:
  Input() = default;
  Result<void> read_whole();

  std::string name_;
  std::string owned_;  // the first block, all of a stream, or what was unpacked
  std::string unpacked_head_;
  UniqueFd rest_;          // where the bytes after `owned_` come from
  size_t file_bytes_ = 0;  // of a regular file, when it was opened; 0: it is a stream
  std::unique_ptr<FileCopy> copy_;
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
