// RemoteBinaries: build ids and facts of program files, parsed by a process without privilege.
//
// Of its own, so that a question which takes long holds up nothing else. While it lives, it is the
// BinaryReader of the process. Threads: any; questions wait for one another. Failures: as
// ReaderProcess.
#pragma once

#include "os/process/binary_reader.h"
#include "reader/reader_process.h"

namespace assay::reader {

class RemoteBinaries final : public os::BinaryReader {
 public:
  explicit RemoteBinaries(const ReaderOptions& options) : process_(options) {
    os::set_binary_reader(this);
  }
  ~RemoteBinaries() override { os::set_binary_reader(nullptr); }
  RemoteBinaries(const RemoteBinaries&) = delete;
  RemoteBinaries& operator=(const RemoteBinaries&) = delete;

  Result<std::string> build_id(int fd) override;
  Result<os::BinaryFacts> facts(int fd) override;

 private:
  ReaderProcess process_;
};

}  // namespace assay::reader
