// The /proc/PID/maps text at the end of gperftools files: where addresses belong.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "formats/import/reading.h"

namespace assay::formats {

class ImportedMaps {
 public:
  // Reads what looks like maps lines and skips the rest.
  explicit ImportedMaps(std::string_view text);
  // The frame of an absolute address; of no known module when nothing is mapped there.
  model::FrameId frame(RunBuilder& builder, uint64_t address) const;
  bool covers(uint64_t address) const { return find(address) != ranges_.end(); }
  // Tells where the code lay in the process of `of_thread`.
  void store(RunBuilder& builder, model::ThreadId of_thread) const;
  std::string main_program() const { return main_; }

 private:
  struct Range {
    uint64_t end = 0, offset = 0;
    std::string path;
  };
  using Ranges = std::map<uint64_t, Range>;
  Ranges::const_iterator find(uint64_t address) const;

  Ranges ranges_;  // by their start
  std::string main_;
};

}  // namespace assay::formats
