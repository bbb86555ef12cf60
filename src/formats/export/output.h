// Output: a file that is there whole or not at all.
//
// Bytes go to a temporary file beside the destination; commit() renames it into place, and without
// commit() nothing is left behind. The destination "" or "-" is standard output. Not thread-safe.
// Failures: the first one is kept and returned by commit(); writes after it do nothing.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::formats {

class Output {
 public:
  static Result<Output> create(const std::string& path);
  static Output to_memory() { return Output(); }  // text() has it
  Output(Output&&) = default;
  Output& operator=(Output&&) = delete;
  ~Output();

  void write(std::string_view bytes);
  Result<void> commit();
  const std::string& text() const { return text_; }

 private:
  struct Close {
    void operator()(FILE* file) const {
      if (file != stdout) fclose(file);
    }
  };
  Output() = default;

  std::string path_;
  std::string temporary_;
  std::unique_ptr<FILE, Close> file_;
  std::string text_;
  int error_ = 0;
};

}  // namespace assay::formats
