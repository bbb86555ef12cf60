#include "os/process/binary_reader.h"

#include <atomic>

#include <fcntl.h>

#include "os/process/module_file.h"
#include "os/regular_file.h"
#include "os/sandbox/credentials.h"

namespace assay::os {
namespace {

class DirectReader final : public BinaryReader {
 public:
  Result<std::string> build_id(int fd) override { return read_build_id(fd); }
  Result<BinaryFacts> facts(int fd) override { return read_binary_facts(fd); }
};

std::atomic<BinaryReader*> chosen = nullptr;

}  // namespace

BinaryReader& binary_reader() {
  static DirectReader direct;
  BinaryReader* other = chosen;
  return other != nullptr ? *other : direct;
}

void set_binary_reader(BinaryReader* reader) {
  chosen = reader;
}

Result<UniqueFd> open_as_seen(pid_t pid, const std::string& path, const std::string& proc_root) {
  ActAs user(credentials_of(pid, proc_root).value_or(Credentials{kNobody, kNobody, {}}));
  if (!user.holds()) return fail("the rights of process {} cannot be taken on", pid);
  return open_regular(fmt::format("{}/{}/root{}", proc_root, pid, path));
}

Result<UniqueFd> open_program(pid_t pid, const std::string& proc_root) {
  std::string link = fmt::format("{}/{}/exe", proc_root, pid);
  UniqueFd handle(::open(link.c_str(), O_PATH | O_CLOEXEC));
  if (!handle.valid()) return fail_errno("cannot open {}", link);
  // A program can be for running alone: then its bytes are no more for us than for its user.
  ActAs user(credentials_of(pid, proc_root).value_or(Credentials{kNobody, kNobody, {}}));
  if (!user.holds()) return fail("the rights of process {} cannot be taken on", pid);
  return open_regular(std::move(handle), link);
}

}  // namespace assay::os
