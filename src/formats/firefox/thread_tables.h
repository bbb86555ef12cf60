// The tables of one thread of a processed profile: strings, resources, functions, frames, stacks,
// samples and markers, filled as samples and waits come.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/export/output.h"
#include "formats/export/selected_run.h"

namespace assay::formats {

// Indices of the profile's category list.
enum class FirefoxCategory : int { other, application, library, kernel, jit, waiting };

class ThreadTables {
 public:
  explicit ThreadTables(const SelectedRun& run) : run_(run) {}

  void add(const model::Sample& sample);
  void add(const SelectedWait& wait);
  bool empty() const { return samples_.empty() && markers_.empty(); }
  // The thread as JSON; `libs` gives the profile's index of a module.
  void write(const model::Thread& thread, const std::string& process_name, pid_t pid,
             const std::vector<int>& libs, Output& output);

 private:
  struct SampleRow {
    TimeNs time;
    int64_t weight_ns;
    int stack;
  };
  struct MarkerRow {
    TimeNs begin;
    int64_t length_ns;
    int64_t runqueue_ns;
    int stack;
    analysis::BlockKind kind;
    uint16_t syscall;
  };
  struct FrameRow {
    int64_t address;
    int inline_depth;
    FirefoxCategory category;
    int func;
    uint32_t line;
  };
  struct FuncRow {
    int name;
    int resource;
    int file;  // −1: none
    uint32_t line;
  };
  struct StackRow {
    int frame;
    int prefix;  // −1: none
  };

  int string(std::string_view text);
  int resource(uint32_t module);
  int func(uint32_t module, std::string_view name, std::string_view file, uint32_t line);
  int stack(model::StackId id);
  int push(int prefix, const FrameRow& frame);
  int push_frames(int prefix, model::FrameId id);
  double ms(TimeNs time) const { return static_cast<double>(time - run_.begin_ns()) / 1e6; }
  void write_samples(Output& output);
  void write_markers(Output& output);
  void write_stacks(Output& output) const;
  void write_funcs(const std::vector<int>& libs, Output& output) const;

  const SelectedRun& run_;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, int> string_ids_;
  std::vector<std::pair<uint32_t, int>> resources_;  // module, name
  std::unordered_map<uint32_t, int> resource_ids_;
  std::vector<FuncRow> funcs_;
  std::unordered_map<std::string, int> func_ids_;
  std::vector<FrameRow> frames_;
  std::unordered_map<std::string, int> frame_ids_;
  std::vector<StackRow> stacks_;
  std::unordered_map<uint64_t, int> stack_ids_;
  std::unordered_map<model::StackId, int> known_stacks_;
  std::vector<SampleRow> samples_;
  std::vector<MarkerRow> markers_;
};

}  // namespace assay::formats
