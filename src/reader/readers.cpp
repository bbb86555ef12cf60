#include "reader/readers.h"

#include <algorithm>
#include <thread>

#include "reader/protocol.h"
#include "reader/remote_symbolizer.h"

namespace assay::reader {
namespace {

constexpr size_t kMostReaders = 4;

}  // namespace

Readers::Readers(const ReaderOptions& options) {
  if (options.program.empty()) return;
  size_t count = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostReaders);
  for (size_t i = 0; i < count; ++i) processes_.push_back(std::make_shared<ReaderProcess>(options));
}

std::unique_ptr<symbol::Symbolizer> Readers::symbolizer(const symbol::Options& options) {
  if (processes_.empty()) return symbol::Symbolizer::create(options);
  return std::make_unique<RemoteSymbolizer>(*this, options);
}

unwind::BuildTable Readers::table_builder() {
  if (processes_.empty()) return nullptr;
  // The last one: a capture builds tables while names are found, and most modules are named by the
  // others.
  std::shared_ptr<ReaderProcess> process = processes_.back();
  return [process](int fd, const std::string& build_id) -> Result<std::vector<std::byte>> {
    auto answer = process->ask(
        WireWriter().u8(static_cast<uint8_t>(Kind::build_table)).text(build_id).take(), {fd}, 0);
    if (!answer) return std::unexpected(answer.error());
    WireReader in(*answer);
    if (std::string problem = in.text(); !problem.empty()) return fail("{}", problem);
    std::string bytes = in.text();
    if (!in.done()) return fail("the process that reads files sent no table");
    auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    return std::vector<std::byte>(begin, begin + bytes.size());
  };
}

}  // namespace assay::reader
