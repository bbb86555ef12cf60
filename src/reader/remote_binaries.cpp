#include "reader/remote_binaries.h"

#include "reader/protocol.h"

namespace assay::reader {
namespace {

// The answer behind its first field, which says what was wrong.
Result<WireReader> checked(const Result<std::string>& answer) {
  if (!answer) return std::unexpected(answer.error());
  WireReader in(*answer);
  if (std::string problem = in.text(); !problem.empty()) return fail("{}", problem);
  return in;
}

std::unexpected<Error> nonsense() {
  return fail("the process that reads files sent no answer");
}

std::string question(Kind kind) {
  return WireWriter().u8(static_cast<uint8_t>(kind)).take();
}

}  // namespace

Result<std::string> RemoteBinaries::build_id(int fd) {
  auto answer = process_.ask(question(Kind::build_id), {fd}, 0);
  auto in = checked(answer);
  if (!in) return std::unexpected(in.error());
  std::string id = in->text();
  constexpr size_t kLongest = 128;
  bool is_hex = id.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!in->done() || !is_hex || id.size() > kLongest) return nonsense();
  return id;
}

Result<os::BinaryFacts> RemoteBinaries::facts(int fd) {
  auto answer = process_.ask(question(Kind::binary_facts), {fd}, 0);
  auto in = checked(answer);
  if (!in) return std::unexpected(in.error());
  os::BinaryFacts facts = read_facts(*in);
  if (!in->done()) return nonsense();
  return facts;
}

}  // namespace assay::reader
