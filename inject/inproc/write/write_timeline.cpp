#include "inject/inproc/write/write_timeline.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "inject/inproc/write/named_code.h"

namespace assay::inproc {
namespace {

class TimelineWriter {
 public:
  TimelineWriter(const CpuResult& result, Arena& arena, ByteBuffer& out)
      : result_(result), arena_(arena), out_(out) {}

  bool write() {
    auto* events = arena_.array<CpuEvent>(result_.event_count + 1);
    if (events == nullptr || !make_cpu_profile(result_, arena_, profile_) ||
        !code_.make(profile_, arena_))
      return false;
    // A handler that was interrupted between reserving its entry and filling it leaves a zero.
    size_t count = 0;
    for (uint64_t i = 0; i < result_.event_count; ++i)
      if (result_.events[i].tid != 0) events[count++] = result_.events[i];
    std::sort(events, events + count, [](const CpuEvent& a, const CpuEvent& b) {
      return a.tid != b.tid ? a.tid < b.tid : a.time_ns < b.time_ns;
    });
    out_.append("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    name_process();
    for (size_t i = 0; i < count; ++i) {
      if (i == 0 || events[i].tid != events[i - 1].tid) begin_thread(events[i].tid);
      take(events[i]);
    }
    close_spans(0, last_ns_ + result_.period_ns);
    out_.append("]}\n");
    return !out_.failed() && !arena_.failed();
  }

 private:
  struct Span {
    const CodeAddress* code;
    int64_t begin_ns;
  };

  static bool same_function(const CodeAddress* a, const CodeAddress* b) {
    if (a == nullptr || b == nullptr) return a == b;
    return a->name != nullptr ? a->function_start == b->function_start : a->address == b->address;
  }

  void name_process() {
    out_.print("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"",
               getpid());
    append_json_text(program_path(arena_), out_);
    out_.append("\"}}");
  }

  void begin_thread(uint32_t tid) {
    close_spans(0, last_ns_ + result_.period_ns);
    tid_ = tid;
    last_ns_ = 0;
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    ByteBuffer text;
    if (read_whole_file(path, text) && text.size() > 0) {
      size_t bytes = std::min(text.size() - 1, sizeof name - 1);
      std::memcpy(name, text.data(), bytes);
    }
    out_.print(
        ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":\"",
        getpid(), tid);
    append_json_text(name, out_);
    out_.append("\"}}");
  }

  void take(const CpuEvent& event) {
    SampleRow row;
    if (!result_.table->row(event.row, row)) return;
    if (last_ns_ != 0 && event.time_ns - last_ns_ > kGapPeriods * result_.period_ns)
      close_spans(0, last_ns_ + result_.period_ns);
    uint32_t frames = std::min(row.frames, kMaxCpuFrames), common = 0;
    const CodeAddress* names[kMaxCpuFrames];
    for (uint32_t i = 0; i < frames; ++i) {
      uint32_t frame = frames - 1 - i;
      names[i] = code_.find(row.pcs[frame] - (frame == 0 ? 0 : 1));
    }
    while (common < depth_ && common < frames && same_function(spans_[common].code, names[common]))
      ++common;
    close_spans(common, event.time_ns);
    for (; depth_ < frames; ++depth_) spans_[depth_] = {names[depth_], event.time_ns};
    last_ns_ = event.time_ns;
  }

  void close_spans(uint32_t down_to, int64_t end_ns) {
    while (depth_ > down_to) {
      const Span& span = spans_[--depth_];
      out_.append(",\n{\"ph\":\"X\",\"name\":\"");
      write_name(span.code);
      out_.print("\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f}", getpid(), tid_,
                 static_cast<double>(span.begin_ns) / 1000,
                 static_cast<double>(end_ns - span.begin_ns) / 1000);
    }
  }

  void write_name(const CodeAddress* code) {
    if (code != nullptr && code->name != nullptr) return append_json_text(code->name, out_);
    const char* path = code != nullptr && code->module != nullptr ? code->module->path : "?";
    const char* slash = std::strrchr(path, '/');
    append_json_text(slash == nullptr ? path : slash + 1, out_);
  }

  const CpuResult& result_;
  Arena& arena_;
  ByteBuffer& out_;
  Profile profile_;
  NamedCode code_;
  Span spans_[kMaxCpuFrames];
  uint32_t depth_ = 0, tid_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace

void append_json_text(const char* text, ByteBuffer& out) {
  for (; *text != 0; ++text) {
    auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\')
      out.print("\\%c", c);
    else if (c < 0x20 || c >= 0x7f)
      out.print("\\u%04x", c);
    else
      out.append(text, 1);
  }
}

bool write_timeline(const CpuResult& result, Arena& arena, ByteBuffer& out) {
  return TimelineWriter(result, arena, out).write();
}

}  // namespace assay::inproc
