// Output: a file that is there whole or not at all.
//
// Bytes go to a private file beside the destination (base/private_file.h); commit() renames it into
// place, and without commit() nothing is left behind. A link, a device or a directory is not
// replaced. The destination "" or "-" is standard output. Not thread-safe.
// Failures: the first one is kept and returned by commit(); writes after it do nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/private_file.h"
#include "base/result.h"

namespace assay::formats {

class Output {
 public:
  static Result<Output> create(const std::string& path);
  static Output to_memory() { return Output(); }  // text() has it
  Output(Output&&) = default;
  Output& operator=(Output&&) = delete;

  void write(std::string_view bytes);
  Result<void> commit();
  const std::string& text() const { return text_; }

 private:
  enum class Kind : uint8_t { memory, standard_output, file };
  void flush();

  Output() = default;

  Kind kind_ = Kind::memory;
  std::optional<PrivateFile> file_;
  std::string text_;  // in memory all of it, else what is not handed on yet
  std::optional<Error> error_;
};

// All of it at once.
Result<void> write_whole(const std::string& path, std::string_view text);

}  // namespace assay::formats
