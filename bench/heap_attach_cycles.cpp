// heap_attach_cycles: attaches the heap sampler to a running process and detaches it, again and
// again, and prints how long threads were held.
//
//   heap_attach_cycles PID CYCLES LIBRARY [HOLD_MS]
//
// One line of JSON at the end: cycles done, failures with their reasons, pauses in µs (of attaching
// and of detaching), where threads were taken, and records read. Ends early when the target has
// ended.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "capture/heap/injector.h"

namespace {

using assay::capture::InjectPause;

struct Pauses {
  std::vector<int64_t> ns;
  int at_malloc = 0;

  void add(const InjectPause& pause) {
    ns.push_back(pause.ns);
    at_malloc += pause.at_malloc;
  }
  std::string text() {
    std::sort(ns.begin(), ns.end());
    auto at = [this](double share) {
      if (ns.empty()) return 0.0;
      auto index = static_cast<size_t>(share * static_cast<double>(ns.size() - 1));
      return static_cast<double>(ns[index]) / 1e3;
    };
    return fmt::format(
        R"({{"count":{},"at_malloc":{},"p50_us":{:.0f},"p99_us":{:.0f},"max_us":{:.0f}}})",
        ns.size(), at_malloc, at(0.5), at(0.99), at(1));
  }
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) out += c == '"' || c == '\\' || c < ' ' ? '\'' : c;
  return out + "\"";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: heap_attach_cycles PID CYCLES LIBRARY [HOLD_MS]\n");
    return 2;
  }
  pid_t pid = std::atoi(argv[1]);
  int cycles = std::atoi(argv[2]), hold_ms = argc > 4 ? std::atoi(argv[4]) : 5;
  assay::capture::InjectOptions options;
  options.library = argv[3];
  options.rate_bytes = 64 << 10;
  Pauses attach, detach;
  std::map<std::string, int> failures;
  int done = 0, ready = 0;
  uint64_t records = 0;
  for (; done < cycles && kill(pid, 0) == 0; ++done) {
    auto injected = assay::capture::inject_sampler(pid, options);
    if (!injected) {
      ++failures[injected.error().what];
      usleep(10'000);
      continue;
    }
    attach.add(injected->pause);
    ready += injected->channel->ready();
    injected->channel->start_sampling();
    usleep(static_cast<useconds_t>(hold_ms) * 1000);
    auto removed = assay::capture::remove_sampler(pid, options.library);
    records += injected->channel->drain([](const assay::capture::HeapRecord&) {});
    if (removed) {
      detach.add(*removed);
    } else {
      ++failures[removed.error().what];
    }
  }
  std::string reasons;
  for (const auto& [what, count] : failures)
    reasons += fmt::format("{}{}:{}", reasons.empty() ? "" : ",", quoted(what), count);
  std::printf("%s\n", fmt::format(R"({{"cycles":{},"ready":{},"records":{},"failures":{{{}}},)"
                                  R"("attach":{},"detach":{},"alive":{}}})",
                                  done, ready, records, reasons, attach.text(), detach.text(),
                                  kill(pid, 0) == 0)
                          .c_str());
  return failures.empty() && done == cycles ? 0 : 1;
}
