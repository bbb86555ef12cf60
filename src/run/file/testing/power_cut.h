// PowerCut: what a disk may hold after the power went away at some step of a recorded capture. For
// tests only.
//
// In: the steps (faulty_disk.h), one by one. Out: the files of the folder, as one of several orders
// would leave them. What was synced is there; of what was not, any part may be: nothing, all of it,
// the last change without those before it, single sectors, the size without the contents, the run
// without its journal. The same holds for names.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "run/file/testing/faulty_disk.h"

namespace assay::run {

class PowerCut {
 public:
  enum class Order : uint8_t {
    nothing_came,
    everything_came,
    last_came_first,
    sizes_without_contents,
    run_without_journal,
    journal_without_run,
    sectors_torn,
    steps_at_random,
    count
  };
  using Folder = std::map<std::string, std::string>;  // contents by name

  // What was there before the first step, on the disk.
  void put(const std::string& name, ino_t file, std::string bytes) {
    files_[file].kept = std::move(bytes);
    names_[name] = file;
  }

  void add(const DiskStep& step) {
    using Kind = DiskStep::Kind;
    switch (step.kind) {
      case Kind::write:
      case Kind::truncate:
        files_[step.file].open.push_back(step);
        break;
      case Kind::sync: {
        File& file = files_[step.file];
        for (const DiskStep& change : file.open) apply(change, file.kept);
        file.open.clear();
        break;
      }
      case Kind::create:
      case Kind::name:
      case Kind::unname:
        open_names_.push_back(step);
        break;
      case Kind::sync_names:
        for (const DiskStep& change : open_names_) apply(change, names_);
        open_names_.clear();
        break;
    }
  }

  Folder folder_after(Order order, std::mt19937& random) const {
    std::map<std::string, ino_t> names = names_;
    for (size_t i = 0; i < open_names_.size(); ++i) {
      if (name_came(order, i, random)) apply(open_names_[i], names);
    }
    Folder folder;
    for (const auto& [name, file] : names) {
      auto found = files_.find(file);
      folder[name] = found == files_.end() ? "" : contents(found->second, name, order, random);
    }
    return folder;
  }

 private:
  struct File {
    std::string kept;            // on the disk
    std::vector<DiskStep> open;  // since then
  };
  static constexpr size_t kSector = 512;

  static void apply(const DiskStep& step, std::string& bytes) {
    if (step.kind == DiskStep::Kind::truncate) return bytes.resize(step.at);
    if (bytes.size() < step.at + step.bytes.size()) bytes.resize(step.at + step.bytes.size());
    bytes.replace(step.at, step.bytes.size(), step.bytes);
  }
  static void apply(const DiskStep& step, std::map<std::string, ino_t>& names) {
    if (step.kind == DiskStep::Kind::unname) {
      names.erase(step.name);
    } else {
      if (!step.former_name.empty()) names.erase(step.former_name);
      names[step.name] = step.file;
    }
  }
  static void apply_sectors(const DiskStep& step, std::string& bytes, std::mt19937& random) {
    if (step.kind == DiskStep::Kind::truncate) return apply(step, bytes);
    uint64_t end = step.at + step.bytes.size();
    if (bytes.size() < end && random() % 2 == 0) bytes.resize(end);
    for (uint64_t at = step.at; at < end;) {
      uint64_t next = std::min(end, (at / kSector + 1) * kSector);
      if (random() % 2 == 0) {
        if (bytes.size() < next) bytes.resize(next);
        bytes.replace(at, next - at, step.bytes, at - step.at, next - at);
      }
      at = next;
    }
  }

  bool name_came(Order order, size_t index, std::mt19937& random) const {
    switch (order) {
      case Order::nothing_came:
        return false;
      case Order::last_came_first:
        return index + 1 == open_names_.size();
      case Order::sectors_torn:
      case Order::steps_at_random:
        return random() % 2 == 0;
      default:
        return true;
    }
  }

  static std::string contents(const File& file, const std::string& name, Order order,
                              std::mt19937& random) {
    bool is_journal = name.ends_with("-journal");
    std::string bytes = file.kept;
    for (size_t i = 0; i < file.open.size(); ++i) {
      const DiskStep& step = file.open[i];
      bool is_last = i + 1 == file.open.size();
      switch (order) {
        case Order::nothing_came:
        case Order::count:
          break;
        case Order::everything_came:
          apply(step, bytes);
          break;
        case Order::last_came_first:
          if (is_last) apply(step, bytes);
          break;
        case Order::sizes_without_contents:
          if (step.kind == DiskStep::Kind::truncate) apply(step, bytes);
          bytes.resize(std::max<uint64_t>(bytes.size(), step.at + step.bytes.size()));
          break;
        case Order::run_without_journal:
          if (!is_journal) apply(step, bytes);
          break;
        case Order::journal_without_run:
          if (is_journal) apply(step, bytes);
          break;
        case Order::sectors_torn:
          apply_sectors(step, bytes, random);
          break;
        case Order::steps_at_random:
          if (random() % 2 == 0) apply(step, bytes);
          break;
      }
    }
    return bytes;
  }

  std::map<ino_t, File> files_;
  std::map<std::string, ino_t> names_;  // on the disk
  std::vector<DiskStep> open_names_;
};

}  // namespace assay::run
