#include "reader/reader_process.h"

#include "base/clock.h"
#include "reader/protocol.h"
#include "reader/serve.h"

namespace assay::reader {

Result<void> ReaderProcess::ensure_started() {
  if (child_) return {};
  auto started = os::ChildProcess::start(options_.program, {kReaderWord});
  if (!started) return std::unexpected(started.error());
  child_.emplace(std::move(*started));
  ++generation_;
  return {};
}

Error ReaderProcess::ended(const Error& reason) {
  std::string how = child_->end();
  child_.reset();
  return {fmt::format("the process that reads files failed: {} ({})", reason.what, how), "", 0};
}

Result<std::string> ReaderProcess::ask(const std::string& question,
                                       const std::vector<int>& descriptors, pid_t pid) {
  std::lock_guard lock(mutex_);
  if (auto started = ensure_started(); !started) return std::unexpected(started.error());
  if (auto sent = child_->channel().send(question, descriptors); !sent)
    return std::unexpected(ended(sent.error()));
  auto answer = converse(pid);
  if (!answer) return std::unexpected(ended(answer.error()));
  return answer;
}

// Until the answer comes: what the reader asks for meanwhile is opened or refused.
Result<std::string> ReaderProcess::converse(pid_t pid) {
  int64_t began_cpu = child_->cpu_ns(), began = monotonic_ns();
  auto too_long = [&] {
    return child_->cpu_ns() - began_cpu > options_.most_cpu_ns ||
           monotonic_ns() - began > options_.most_wall_ns;
  };
  constexpr int kMostFiles = 4096;  // a module with split debug information asks for many
  for (int files = 0; files < kMostFiles; ++files) {
    auto message = child_->channel().receive(too_long);
    if (!message) return std::unexpected(message.error());
    if (message->bytes.empty()) return fail("an empty message");
    if (message->bytes[0] == static_cast<char>(Kind::answer)) return message->bytes.substr(1);
    if (auto opened = open_for_reader(message->bytes, pid); !opened)
      return std::unexpected(opened.error());
  }
  return fail("it asked for too many files");
}

Result<void> ReaderProcess::open_for_reader(const std::string& request, pid_t pid) {
  WireReader in(request);
  auto kind = static_cast<Kind>(in.u8());
  Result<symbol::NamedFile> file = fail("refused");
  if (kind == Kind::ask_debuginfod) {
    std::string build_id = in.text();
    bool is_hex = build_id.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (in.done() && options_.debuginfod && is_hex) file = options_.files->ask_debuginfod(build_id);
  } else {
    auto asked = static_cast<pid_t>(in.u32());
    bool may = asked == pid;  // no other process's files than those of the one that is being named
    if (kind == Kind::open_file) {
      std::string path = in.text();
      bool on_host = in.u8() != 0;
      if (in.done() && may) {
        auto fd = options_.files->open(pid, path, on_host);
        if (fd) file = symbol::NamedFile{std::move(*fd), path};
      }
    } else if (kind == Kind::open_perf_map && in.done() && may) {
      file = options_.files->open_perf_map(pid);
    } else if (kind == Kind::open_jit_dump && in.done() && may) {
      file = options_.files->open_jit_dump(pid);
    } else {
      return fail("a message that is none");
    }
  }
  WireWriter out;
  out.u8(static_cast<uint8_t>(Kind::file))
      .text(file ? "" : file.error().what)
      .text(file ? file->path : "");
  std::vector<int> descriptors;
  if (file) descriptors.push_back(file->fd.get());
  return child_->channel().send(out.take(), descriptors);
}

}  // namespace assay::reader
