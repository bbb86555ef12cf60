// libassay for C++: scopes and functions around assay.h.
//
//   assay::serve("127.0.0.1:8070");                    // /debug/pprof/ from now on
//   assay::label scope("method", "GetValues");         // for this thread's samples, in this scope
#ifndef ASSAY_ASSAY_HPP
#define ASSAY_ASSAY_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include <assay/assay.h>

namespace assay {

// Labels the calling thread while it lives. Make and destroy it on the same thread, innermost
// first.
class [[nodiscard]] label {
 public:
  label(std::string_view key, std::string_view value) noexcept
      : previous_(assay_label_push(key.data(), key.size(), value.data(), value.size())) {}
  ~label() { assay_label_pop(previous_); }
  label(const label&) = delete;
  label& operator=(const label&) = delete;

 private:
  std::uint32_t previous_;
};

inline std::string last_error() {
  char text[256];
  return assay_last_error(text, sizeof text);
}

// The port, or -1: last_error() says why. Without a token that of the environment (ASSAY_TOKEN) is
// used.
inline int serve(const std::string& address, const std::string& token = "") noexcept {
  return assay_serve(address.c_str(), token.empty() ? nullptr : token.c_str());
}

// For addresses that may be missing: nullptr is refused like any other bad one.
inline int serve(const char* address, const char* token = nullptr) noexcept {
  return assay_serve(address, token != nullptr && token[0] != 0 ? token : nullptr);
}

inline void stop_serving() noexcept {
  assay_serve_stop();
}

// A CPU profile over a scope, written to `file` (pprof) at its end.
class [[nodiscard]] cpu_profile {
 public:
  explicit cpu_profile(std::string file, unsigned hz = 0) noexcept
      : file_(static_cast<std::string&&>(file)), running_(assay_cpu_start(hz) == 0) {}
  ~cpu_profile() {
    if (!running_) return;
    assay_output output{};
    output.file = file_.c_str();
    assay_cpu_stop(&output);
  }
  cpu_profile(const cpu_profile&) = delete;
  cpu_profile& operator=(const cpu_profile&) = delete;
  bool running() const noexcept { return running_; }

 private:
  std::string file_;
  bool running_;
};

// The heap as it is now, as a pprof file. False: last_error() says why.
inline bool heap_snapshot(const std::string& file) noexcept {
  assay_output output{};
  output.file = file.c_str();
  return assay_heap_snapshot(&output) == 0;
}

inline bool heap_snapshot(const char* file) noexcept {
  assay_output output{};
  output.file = file;
  return assay_heap_snapshot(&output) == 0;
}

}  // namespace assay

#endif
