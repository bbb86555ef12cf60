#include "os/sandbox/file_keeper.h"

#include <algorithm>
#include <filesystem>

#include "os/regular_file.h"
#include "os/sandbox/cache_entry.h"
#include "os/sandbox/credentials.h"

namespace assay::os {
namespace {

enum class Ask : uint8_t { open, create, commit, discard, temporary, tell };

constexpr size_t kLongestPath = 4096;
constexpr size_t kMostInTheMaking = 4096;
constexpr const char* kKernelSymbols = "/proc/kallsyms";
constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";

bool has(const std::vector<std::string>& list, const std::string& path) {
  return std::ranges::find(list, path) != list.end();
}

std::unexpected<Error> refused(const std::string& path) {
  return fail_with_remedy(fmt::format("{} was not named on the command line", path), "", EACCES);
}

std::string done_bytes(const FoundFile& found, uint32_t ticket) {
  return WireWriter()
      .u8(1)
      .text(found.real_path)
      .u32(found.owner)
      .u32(ticket)
      .u8(found.fd.valid() ? 1 : 0)
      .take();
}

std::string failed_bytes(const Error& error) {
  return WireWriter()
      .u8(0)
      .text(error.what)
      .text(error.remedy)
      .u32(static_cast<uint32_t>(error.code))
      .take();
}

// A file that a capture names is opened with the fewest rights that there are.
Result<FoundFile> open_as_nobody(const std::string& path) {
  ActAs nobody(Credentials{kNobody, kNobody, {}});
  if (!nobody.holds()) return fail("the rights of nobody cannot be taken on to open {}", path);
  auto fd = open_regular(path);
  if (!fd) return std::unexpected(fd.error());
  return FoundFile{std::move(*fd), "", 0};
}

}  // namespace

void FileKeeper::serve(Channel& channel) {
  for (;;) {
    auto question = channel.receive();
    if (!question) return;
    Answer given = answer(question->bytes);
    std::vector<int> descriptors;
    if (given.descriptor.valid()) descriptors.push_back(given.descriptor.get());
    if (!channel.send(given.bytes, descriptors)) return;
  }
}

FileKeeper::Answer FileKeeper::answer(const std::string& question) {
  WireReader in(question);
  auto ask = static_cast<Ask>(in.u8());
  std::string text = in.text();
  uint32_t number = in.u32();
  if (!in.done() || text.size() > kLongestPath)
    return {failed_bytes(Error{"that is no question", "", EINVAL}), {}};
  switch (ask) {
    case Ask::open:
      return open(text, static_cast<uint8_t>(number));
    case Ask::create:
      return create(text, static_cast<uint8_t>(number));
    case Ask::commit: {
      auto found = making_.find(number);
      if (found == making_.end()) return {failed_bytes(refused(text).error()), {}};
      auto done = found->second->commit();
      making_.erase(found);
      return {done ? done_bytes({}, 0) : failed_bytes(done.error()), {}};
    }
    case Ask::discard:
      making_.erase(number);
      return {done_bytes({}, 0), {}};
    case Ask::temporary: {
      auto made = direct_door().temporary();
      if (!made) return {failed_bytes(made.error()), {}};
      FoundFile found{std::move(*made), "", 0};
      std::string bytes = done_bytes(found, 0);
      return {bytes, std::move(found.fd)};
    }
    case Ask::tell:
      if (told_) told_(text);
      return {done_bytes({}, 0), {}};
  }
  return {failed_bytes(Error{"that is no question", "", EINVAL}), {}};
}

FileKeeper::Answer FileKeeper::open(const std::string& path, uint8_t purpose) {
  if (purpose >= kPurposes) return {failed_bytes(refused(path).error()), {}};
  auto found = open_allowed(path, static_cast<Purpose>(purpose));
  if (!found) return {failed_bytes(found.error()), {}};
  std::string bytes = done_bytes(*found, 0);
  return {bytes, std::move(found->fd)};
}

Result<FoundFile> FileKeeper::open_allowed(const std::string& path, Purpose purpose) {
  bool allowed = false;
  switch (purpose) {
    case Purpose::run:
      allowed = has(policy_.runs, path);
      break;
    case Purpose::journal:
      allowed = journals_.contains(path);
      break;
    case Purpose::capture:
      allowed = has(policy_.captures, path);
      break;
    case Purpose::source:
      allowed = policy_.sources;
      break;
    case Purpose::module:
      if (policy_.modules) return open_as_nobody(path);
      break;
    case Purpose::kernel_symbols:
      allowed = policy_.modules && (path == kKernelSymbols || path == kBootId);
      break;
    case Purpose::cache:
      return open_cache_entry(policy_.cache, path);
  }
  if (!allowed) return refused(path);
  auto found = direct_door().open(path, purpose);
  if (found && purpose == Purpose::run && !found->real_path.empty())
    journals_.insert(found->real_path + "-journal");
  return found;
}

bool FileKeeper::may_make(const std::string& path) const {
  if (has(policy_.outputs, path)) return true;
  std::filesystem::path whole(path);
  return std::ranges::any_of(policy_.output_folders, [&](const std::string& folder) {
    std::filesystem::path place(folder);
    return whole == place / whole.filename() && !whole.filename().empty();
  });
}

FileKeeper::Answer FileKeeper::create(const std::string& path, uint8_t existing) {
  if (!may_make(path) || making_.size() >= kMostInTheMaking)
    return {failed_bytes(refused(path).error()), {}};
  auto made = direct_door().create(path, existing == 0 ? Existing::refuse : Existing::replace);
  if (!made) return {failed_bytes(made.error()), {}};
  uint32_t ticket = next_ticket_++;
  making_.emplace(ticket, std::move(made->making));
  FoundFile found{std::move(made->fd), "", 0};
  std::string bytes = done_bytes(found, ticket);
  return {bytes, std::move(found.fd)};
}

// A file that the keeper makes.
class AskedFile final : public FileInTheMaking {
 public:
  AskedFile(AskingDoor& door, uint32_t ticket) : door_(door), ticket_(ticket) {}
  AskedFile(const AskedFile&) = delete;
  AskedFile& operator=(const AskedFile&) = delete;
  ~AskedFile() override {
    if (!committed_) (void)ask(Ask::discard);
  }
  Result<void> commit() override {
    committed_ = true;
    return ask(Ask::commit);
  }

 private:
  Result<void> ask(Ask what) {
    auto reply =
        door_.ask(WireWriter().u8(static_cast<uint8_t>(what)).text("").u32(ticket_).take());
    if (!reply) return std::unexpected(reply.error());
    return {};
  }

  AskingDoor& door_;
  uint32_t ticket_;
  bool committed_ = false;
};

Result<AskingDoor::Reply> AskingDoor::ask(std::string question) {
  std::lock_guard lock(mutex_);
  if (auto sent = channel_.send(question); !sent) return std::unexpected(sent.error());
  auto message = channel_.receive();
  if (!message) return std::unexpected(message.error());
  WireReader in(message->bytes);
  if (in.u8() == 0) {
    Error error;
    error.what = in.text();
    error.remedy = in.text();
    error.code = static_cast<int>(in.u32());
    return std::unexpected(std::move(error));
  }
  Reply reply;
  reply.found.real_path = in.text();
  reply.found.owner = in.u32();
  reply.ticket = in.u32();
  if (in.u8() != 0 && !message->descriptors.empty())
    reply.found.fd = std::move(message->descriptors.front());
  return reply;
}

Result<FoundFile> AskingDoor::open(const std::string& path, Purpose purpose) {
  auto reply = ask(WireWriter()
                       .u8(static_cast<uint8_t>(Ask::open))
                       .text(path)
                       .u32(static_cast<uint32_t>(purpose))
                       .take());
  if (!reply) return std::unexpected(reply.error());
  return std::move(reply->found);
}

Result<NewFile> AskingDoor::create(const std::string& path, Existing existing) {
  auto reply = ask(WireWriter()
                       .u8(static_cast<uint8_t>(Ask::create))
                       .text(path)
                       .u32(existing == Existing::replace ? 1 : 0)
                       .take());
  if (!reply) return std::unexpected(reply.error());
  return NewFile{std::move(reply->found.fd), std::make_unique<AskedFile>(*this, reply->ticket)};
}

Result<UniqueFd> AskingDoor::temporary() {
  auto reply =
      ask(WireWriter().u8(static_cast<uint8_t>(Ask::temporary)).text("").u32(0).take());
  if (!reply) return std::unexpected(reply.error());
  return std::move(reply->found.fd);
}

Result<void> AskingDoor::tell(const std::string& text) {
  auto reply = ask(WireWriter().u8(static_cast<uint8_t>(Ask::tell)).text(text).u32(0).take());
  if (!reply) return std::unexpected(reply.error());
  return {};
}

}  // namespace assay::os
