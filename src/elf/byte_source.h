// ByteSource: the bytes of a file, copied into memory piece by piece as they are asked for.
//
// Files are not mapped: a file that shrinks while it is mapped kills its reader with SIGBUS, and
// the files read here belong to others. What cannot be read any more reads as zeros, which every
// parser refuses. Memory is spent only on pieces that were asked for, and never more of it at a
// time than the budget allows: what goes beyond is not read, and refusal() says why.
// Threads: none; a source belongs to one module and its lock. Failures: what is no regular file,
// is empty or claims an impossible size is an Error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::elf {

// How much of one file is taken. The defaults fit the largest programs that are known: sections
// of DWARF's 32-bit format end at 4 GiB.
struct ReadBudget {
  uint64_t section_bytes = uint64_t{4}
                           << 30;  // of one section, also when unpacked (see decompress)
  uint64_t resident_bytes = uint64_t{384} << 20;  // in memory at a time, of the whole file
};

class ByteSource {
 public:
  static Result<std::unique_ptr<ByteSource>> from_file(UniqueFd fd, const ReadBudget& budget = {});
  // The caller keeps its descriptor.
  static Result<std::unique_ptr<ByteSource>> from_file(int fd, const ReadBudget& budget = {});
  static std::unique_ptr<ByteSource> from_memory(std::string bytes);

  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  uint64_t size() const { return size_; }
  int fd() const { return fd_.get(); }
  const ReadBudget& budget() const { return budget_; }
  // The bytes [offset, offset + size), cut at the end of the source; nothing when they are beyond
  // the budget. Valid while the source lives.
  std::string_view view(uint64_t offset, uint64_t size) {
    if (offset >= size_) return {};
    if (size > size_ - offset) size = size_ - offset;
    if (reserved_ > 0 && size > 0) {
      uint64_t first = offset / kPieceBytes, last = (offset + size - 1) / kPieceBytes;
      if ((first != last || !loaded_[first]) && !load(first, last)) return {};
    }
    return {data_ + offset, size};
  }
  // Gives the memory of a piece back; a later view() reads it again.
  void release(uint64_t offset, uint64_t size);
  // Why something was not read; empty when everything was that was asked for.
  const std::string& refusal() const { return refusal_; }

 private:
  static constexpr uint64_t kPieceBytes = 16 << 10;

  ByteSource() = default;
  bool load(uint64_t first_piece, uint64_t last_piece);

  UniqueFd fd_;
  std::string owned_;
  char* data_ = nullptr;
  uint64_t size_ = 0;
  uint64_t reserved_ = 0;        // bytes of address space held; 0 for memory
  std::vector<uint8_t> loaded_;  // by piece
  uint64_t loaded_bytes_ = 0;
  ReadBudget budget_;
  std::string refusal_;
};

// A part of a source: one section.
struct SectionBytes {
  ByteSource* source = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;

  explicit operator bool() const { return source != nullptr && size > 0; }
  std::string_view view(uint64_t at, uint64_t count) const {
    if (source == nullptr || at >= size) return {};
    return source->view(offset + at, count < size - at ? count : size - at);
  }
  std::string_view all() const { return view(0, size); }
  // The NUL-terminated text at `at`; empty when it does not end within the section. Longer names
  // than a linker would take are cut off: they are not names.
  std::string_view text(uint64_t at) const;
};

}  // namespace assay::elf
