#include "formats/export/output.h"

#include <cstdio>

namespace assay::formats {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

}  // namespace

Result<Output> Output::create(const std::string& path) {
  Output output;
  if (path.empty() || path == "-") {
    output.kind_ = Kind::standard_output;
    return output;
  }
  auto file = PrivateFile::create(path, PrivateFile::Existing::replace);
  if (!file) return std::unexpected(file.error());
  output.kind_ = Kind::file;
  output.file_.emplace(std::move(*file));
  return output;
}

void Output::write(std::string_view bytes) {
  text_ += bytes;
  if (kind_ != Kind::memory && text_.size() >= kPieceBytes) flush();
}

void Output::flush() {
  if (!error_ && kind_ == Kind::file) {
    if (auto done = file_->write(text_); !done) error_ = done.error();
  } else if (!error_) {
    errno = 0;
    if (fwrite(text_.data(), 1, text_.size(), stdout) != text_.size() || fflush(stdout) != 0) {
      if (errno == 0) errno = EIO;
      error_ = fail_errno("cannot write standard output").error();
    }
  }
  text_.clear();
}

Result<void> Output::commit() {
  if (kind_ == Kind::memory) return {};
  flush();
  if (error_) return std::unexpected(*error_);
  return kind_ == Kind::file ? file_->commit() : Result<void>{};
}

Result<void> write_whole(const std::string& path, std::string_view text) {
  auto output = Output::create(path);
  if (!output) return std::unexpected(output.error());
  output->write(text);
  return output->commit();
}

}  // namespace assay::formats
