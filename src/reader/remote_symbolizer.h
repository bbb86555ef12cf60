// RemoteSymbolizer: a Symbolizer whose files are read by reader processes (see readers.h).
//
// Keeps the opened file of each module, so that a reader that is started anew can be given it
// again.
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "reader/reader_process.h"
#include "symbol/symbolizer.h"

namespace assay::reader {

class Readers;

class RemoteSymbolizer final : public symbol::Symbolizer {
 public:
  RemoteSymbolizer(const Readers& readers, const symbol::Options& options);

  void add_module(pid_t pid, const model::Mapping& mapping, const model::Module& module) override;
  std::vector<model::Location> resolve(model::ModuleId module, uint64_t address) override;
  std::vector<std::vector<model::Location>> resolve_all(
      std::span<const model::Frame> frames) override;
  std::string resolve_data(model::ModuleId module, uint64_t address) override;
  symbol::ModuleStatus module_status(model::ModuleId module) const override;

 private:
  struct Entry {
    model::Module module;
    pid_t pid = 0;
    UniqueFd file;
    std::string opened_path, build_id, problem;
    std::shared_ptr<ReaderProcess> process;
    uint64_t known_to = 0;  // the generation of the reader that has been given it
    std::string failure;    // why it is not asked about any more; empty: it is
  };

  Entry* find(model::ModuleId module) const;
  Result<std::string> ask(Entry& entry, const std::string& question) const;
  Result<void> give(Entry& entry) const;
  std::vector<std::vector<model::Location>> resolve_many(
      Entry& entry, const std::vector<uint64_t>& addresses) const;

  const Readers& readers_;
  std::shared_ptr<symbol::FileAccess> files_;
  std::unique_ptr<symbol::Symbolizer> here_;  // names that come from this machine
  mutable std::shared_mutex mutex_;
  std::map<model::ModuleId, std::unique_ptr<Entry>> entries_;
};

}  // namespace assay::reader
