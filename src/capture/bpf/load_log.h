// LoadLog: what libbpf says while it loads programs, reduced to one reason and the verifier's log.
//
// In: libbpf's warnings, one call each. Out: a sentence that says why the load failed, and the log
// of the kernel's verifier for the refused program. Memory is bounded: of a long log the end is
// kept, because it contains the reason.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::capture {

class LoadLog {
 public:
  void add(std::string_view text);

  // One line: the program and the verifier's reason, or libbpf's first message. Empty when there
  // was none.
  std::string reason() const;
  // The verifier's log; empty when the verifier refused nothing.
  const std::string& verifier_log() const { return log_; }

 private:
  std::string first_words_;
  std::string program_;
  std::string log_;
};

// What failed, the kernel's error, and the log's reason; the verifier's log as detail. The remedy
// is given where it is certain: rights are missing. (EACCES with a log is the verifier's refusal.)
Error load_error(std::string_view what, int code, const LoadLog& log);

}  // namespace assay::capture
