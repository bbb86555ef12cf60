#include "reader/serve.h"

#include <cstdio>
#include <new>

#include <sys/syscall.h>
#include <unistd.h>

#include "os/sandbox/channel.h"
#include "os/sandbox/confine.h"
#include "reader/protocol.h"
#include "symbol/file_access.h"
#include "unwind/table/build_from_file.h"

namespace assay::reader {
namespace {

// Files by way of the process that may open them.
class AskedFiles final : public symbol::FileAccess {
 public:
  explicit AskedFiles(os::Channel& channel) : channel_(channel) {}

  void give_module(Result<os::ModuleFile> file) { module_ = std::move(file); }

  Result<os::ModuleFile> open_module(pid_t, const model::Mapping&, const model::Module&) override {
    return std::exchange(module_, Result<os::ModuleFile>(fail("the file was not given")));
  }
  Result<UniqueFd> open(pid_t pid, const std::string& path, bool on_host) override {
    WireWriter out;
    out.u8(static_cast<uint8_t>(Kind::open_file))
        .u32(static_cast<uint32_t>(pid))
        .text(path)
        .u8(on_host);
    auto file = ask(out.take());
    if (!file) return std::unexpected(file.error());
    return std::move(file->fd);
  }
  Result<symbol::NamedFile> open_perf_map(pid_t pid) override {
    return ask_for(Kind::open_perf_map, pid);
  }
  Result<symbol::NamedFile> open_jit_dump(pid_t pid) override {
    return ask_for(Kind::open_jit_dump, pid);
  }
  Result<symbol::NamedFile> ask_debuginfod(const std::string& build_id) override {
    return ask(WireWriter().u8(static_cast<uint8_t>(Kind::ask_debuginfod)).text(build_id).take());
  }

 private:
  Result<symbol::NamedFile> ask_for(Kind kind, pid_t pid) {
    return ask(WireWriter().u8(static_cast<uint8_t>(kind)).u32(static_cast<uint32_t>(pid)).take());
  }
  Result<symbol::NamedFile> ask(const std::string& question) {
    if (auto sent = channel_.send(question); !sent) _exit(1);
    auto answer = channel_.receive();
    if (!answer) _exit(1);
    WireReader in(answer->bytes);
    bool is_file = in.u8() == static_cast<uint8_t>(Kind::file);
    std::string problem = in.text();
    std::string path = in.text();
    if (!is_file || !in.done()) _exit(1);
    if (!problem.empty() || answer->descriptors.empty()) return fail("{}", problem);
    return symbol::NamedFile{std::move(answer->descriptors.front()), path};
  }

  os::Channel& channel_;
  Result<os::ModuleFile> module_ = fail("the file was not given");
};

class Server {
 public:
  explicit Server(os::Channel channel)
      : channel_(std::move(channel)), files_(std::make_shared<AskedFiles>(channel_)) {
    symbol::Options options;
    options.files = files_;
    options.debuginfod = true;  // whether it is asked is decided where files are opened
    symbolizer_ = symbol::Symbolizer::create(options);
  }

  int run() {
    for (;;) {
      auto question = channel_.receive();
      if (!question) return 0;  // Assay has ended
      std::string answer;
      try {
        answer = answer_to(*question);
      } catch (const std::bad_alloc&) {
        return kOutOfMemory;
      }
      if (!channel_.send(answer)) return 0;
    }
  }

 private:
  static constexpr int kOutOfMemory = 12;

  std::string answer_to(os::Message& question) {
    WireReader in(question.bytes);
    WireWriter out;
    out.u8(static_cast<uint8_t>(Kind::answer));
    switch (static_cast<Kind>(in.u8())) {
      case Kind::add_module:
        add_module(in, question);
        break;
      case Kind::resolve:
        resolve(in, out);
        break;
      case Kind::resolve_data: {
        model::ModuleId id{in.u32()};
        out.text(symbolizer_->resolve_data(id, in.u64()));
        break;
      }
      case Kind::status:
        write(out, symbolizer_->module_status(model::ModuleId{in.u32()}));
        break;
      case Kind::build_table:
        build_table(in, question, out);
        break;
      case Kind::build_id: {
        auto id = os::read_build_id(file_of(question));
        out.text(id ? "" : id.error().what).text(id.value_or(""));
        break;
      }
      case Kind::binary_facts: {
        auto facts = os::read_binary_facts(file_of(question));
        out.text(facts ? "" : facts.error().what);
        write(out, facts.value_or(os::BinaryFacts{}));
        break;
      }
      default:
        _exit(1);
    }
    return out.take();
  }

  static int file_of(const os::Message& question) {
    if (question.descriptors.empty()) _exit(1);
    return question.descriptors.front().get();
  }

  void add_module(WireReader& in, os::Message& question) {
    model::Module module;
    module.id = model::ModuleId{in.u32()};
    module.kind = static_cast<model::ModuleKind>(in.u8());
    module.path = in.text();
    module.build_id = in.text();
    auto pid = static_cast<pid_t>(in.u32());
    os::ModuleFile file;
    file.opened_path = in.text();
    file.build_id = in.text();
    std::string problem = in.text();
    if (!question.descriptors.empty()) {
      file.fd = std::move(question.descriptors.front());
      files_->give_module(std::move(file));
    } else {
      files_->give_module(fail("{}", problem));
    }
    symbolizer_->add_module(pid, {}, module);
  }

  void resolve(WireReader& in, WireWriter& out) {
    model::ModuleId id{in.u32()};
    uint32_t count = in.count(sizeof(uint64_t));
    out.u32(count);
    for (uint32_t i = 0; i < count; ++i) write(out, symbolizer_->resolve(id, in.u64()));
  }

  static void build_table(WireReader& in, os::Message& question, WireWriter& out) {
    std::string build_id = in.text();
    if (question.descriptors.empty()) _exit(1);
    auto table = unwind::build_from_file(question.descriptors.front().get(), build_id);
    out.text(table ? "" : table.error().what);
    if (table) out.text({reinterpret_cast<const char*>(table->data()), table->size()});
  }

  os::Channel channel_;
  std::shared_ptr<AskedFiles> files_;
  std::unique_ptr<symbol::Symbolizer> symbolizer_;
};

}  // namespace

int serve(int channel_descriptor) {
  ::syscall(SYS_close_range, channel_descriptor + 1, ~0u, 0);
  // Besides what elf::ReadBudget allows to be kept of a file.
  constexpr uint64_t kHeapBytes = 1u << 30;
  if (auto confined = os::confine({.heap_bytes = kHeapBytes}); !confined) {
    std::fprintf(stderr, "assay: the reader cannot give up its privileges: %s\n",
                 confined.error().what.c_str());
    return 1;
  }
  return Server(os::Channel(UniqueFd(channel_descriptor))).run();
}

}  // namespace assay::reader
