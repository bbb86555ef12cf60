// With: an environment variable for the time of a test. For tests only.
#pragma once

#include <optional>
#include <string>

#include <stdlib.h>

namespace assay {

class With {
 public:
  // `value` null: the variable is not there.
  With(const char* name, const char* value) : name_(name) {
    if (const char* before = ::getenv(name)) before_ = before;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~With() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace assay
