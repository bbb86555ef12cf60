// FileKeeper and AskingDoor: files for a confined process, within what the command line allows.
//
// The confined process has an AskingDoor in the place of its file door (base/file_door.h); every
// file that it needs is asked for over a Channel. The FileKeeper answers at the other end, with the
// rights of the user: it opens the inputs that the user named and the journals beside them, makes
// the outputs that the user named, and refuses everything else. It reads no byte of any file.
// Threads: the keeper's is one; the door may be asked by any. Failures: the keeper's Errors come out
// of the door as they are; "the other process has ended" when it is gone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/file_door.h"
#include "base/wire.h"
#include "os/sandbox/channel.h"

namespace assay::os {

// What may be asked for, by exact path.
struct FilePolicy {
  std::vector<std::string> runs;
  std::vector<std::string> captures;
  std::vector<std::string> outputs;
  std::vector<std::string> output_folders;  // any file directly in them may be made
  bool sources = false;                     // any regular file, for the user wants source lines
  bool modules = false;                     // programs and the kernel's symbols, to name addresses
  std::string cache;  // folder of caches whose entries may be read; empty: none
};

class FileKeeper {
 public:
  // `told` gets what the confined process says with AskingDoor::tell().
  FileKeeper(FilePolicy policy, std::function<void(const std::string&)> told)
      : policy_(std::move(policy)), told_(std::move(told)) {}
  // Answers until the other side is gone. What was made and not committed goes with this object.
  void serve(Channel& channel);

 private:
  struct Answer {
    std::string bytes;
    UniqueFd descriptor;
  };
  Answer answer(const std::string& question);
  Answer open(const std::string& path, uint8_t purpose);
  Result<FoundFile> open_allowed(const std::string& path, Purpose purpose);
  Answer create(const std::string& path, uint8_t existing);
  bool may_make(const std::string& path) const;

  FilePolicy policy_;
  std::function<void(const std::string&)> told_;
  std::set<std::string> journals_;  // beside the runs that were opened
  std::map<uint32_t, std::unique_ptr<FileInTheMaking>> making_;
  uint32_t next_ticket_ = 1;
};

class AskingDoor final : public FileDoor {
 public:
  explicit AskingDoor(Channel channel) : channel_(std::move(channel)) {}
  Result<FoundFile> open(const std::string& path, Purpose purpose) override;
  Result<NewFile> create(const std::string& path, Existing existing) override;
  Result<UniqueFd> temporary() override;
  Result<void> tell(const std::string& text);

 private:
  friend class AskedFile;
  struct Reply {
    FoundFile found;
    uint32_t ticket = 0;
  };
  Result<Reply> ask(std::string question);

  std::mutex mutex_;
  Channel channel_;
};

}  // namespace assay::os
