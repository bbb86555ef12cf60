// PerfDataLoader: makes a PerfData of a file's bytes: attributes, features, and the index by time.
#pragma once

#include <memory>

#include "formats/perf/perf_data.h"

struct ZSTD_DCtx_s;

namespace assay::formats {

class PerfDataLoader {
 public:
  explicit PerfDataLoader(const Input& input);
  ~PerfDataLoader();
  PerfDataLoader(const PerfDataLoader&) = delete;
  PerfDataLoader& operator=(const PerfDataLoader&) = delete;

  Result<PerfData> load();

 private:
  Result<void> load_file();
  Result<void> load_attributes(uint64_t offset, uint64_t size, uint64_t each);
  Result<void> load_features(uint64_t data_end, const uint64_t (&bits)[4]);
  void take_feature(int id, std::string_view bytes);
  void take_event_names(std::string_view bytes);
  void take_build_ids(std::string_view bytes);
  Result<void> take_attribute(std::string_view bytes, size_t offset);
  void add_event(std::string_view attr, std::string_view ids);
  // Records from `at` to `end` of the file.
  Result<void> load_records(size_t at, size_t end);
  Result<void> index_record(std::string_view record, size_t offset);
  Result<size_t> take_synthetic(uint32_t type, std::string_view record, size_t at, size_t end);
  Result<void> unpack(std::string_view packed, size_t offset);
  void name_events();
  void sort_by_time();
  const perf_event_attr* attr_of(uint32_t type, std::string_view body, uint32_t& event) const;

  const Input& input_;
  std::string_view bytes_;
  PerfData out_;
  ZSTD_DCtx_s* unpacker_ = nullptr;
  std::string leftover_;  // the beginning of a record that goes on in the next packed piece
  size_t unpacked_bytes_ = 0;
};

}  // namespace assay::formats
