// The options that choose a target, the same for every command that takes one.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "target/target.h"

namespace assay::cli {

class TargetOptions {
 public:
  void add_to(CLI::App& parser);
  // The target asked for; an Error (wrong usage) when there is none or more than one. `command` is
  // what stood after "--".
  Result<target::TargetSpec> spec(const std::vector<std::string>& command) const;
  bool given() const;
  // As the user would write it: "--port 8000".
  std::string text(const std::vector<std::string>& command) const;

 private:
  target::TargetSpec spec_;
  bool no_children_ = false;
};

}  // namespace assay::cli
