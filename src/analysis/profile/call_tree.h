// CallTree: the run's frames as functions, and its stacks as call paths of functions.
//
// Two stacks that differ only in addresses inside the same functions are one path, so that what is
// aggregated is what a person calls "the same stack". An inlined function is a function of its own,
// between its caller and what it calls. A frame without a name is the function "module+0xaddress";
// a marker frame is a function named by model::stack_end_text. In: run::Contents, which must
// outlive the tree (names are views into it). Read-only once made. Failures: none; indices that
// point outside their table are treated as absent.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/stack.h"
#include "run/reader.h"

namespace assay::analysis {

enum class CodeKind : uint8_t { user, kernel, marker };

struct Function {
  std::string_view name;
  std::string_view module;  // last part of the module's path
  std::string_view file;    // empty when unknown
  uint32_t line = 0;        // where the function begins; 0 when unknown
  CodeKind kind = CodeKind::user;
  bool named = true;  // false: no symbol was found
};

// One frame of a shown stack, as text.
struct FrameText {
  std::string function;
  std::string module;
  std::string file;
  uint32_t line = 0;  // line of the call or sample
  CodeKind kind = CodeKind::user;
  bool inlined = false;
  bool named = true;
};

using FunctionIndex = uint32_t;
using PathIndex = uint32_t;  // 0 is the empty path

class CallTree {
 public:
  explicit CallTree(const run::Contents& run);

  struct Path {
    PathIndex parent = 0;
    FunctionIndex function = 0;
  };

  const std::vector<Function>& functions() const { return functions_; }
  const std::vector<Path>& paths() const { return paths_; }
  size_t stack_count() const { return stacks_.size(); }

  // Out-of-range stacks answer as the empty stack does.
  PathIndex path_of(model::StackId stack) const { return at(stack).path; }
  model::StackEnd end_of(model::StackId stack) const { return at(stack).end; }
  const Function* leaf_of(model::StackId stack) const;          // null for the empty stack
  std::vector<FrameText> texts_of(model::StackId stack) const;  // leaf first

 private:
  struct Stack {
    PathIndex path = 0;
    model::StackEnd end = model::StackEnd::complete;
  };
  const Stack& at(model::StackId stack) const {
    return stacks_[stack.value < stacks_.size() ? stack.value : 0];
  }
  void name_frames();
  void lay_paths();
  const model::Module* module_of(const model::Frame& frame) const;
  Function unnamed(const model::Frame& frame);
  // Functions of a frame, outermost first.
  std::span<const FunctionIndex> functions_of(model::FrameId frame) const;

  const run::Contents& run_;
  std::vector<Function> functions_;
  std::deque<std::string> composed_;  // names that are in no table of the run
  std::vector<uint32_t> first_;       // by frame: where its functions begin in of_frame_
  std::vector<FunctionIndex> of_frame_;
  std::vector<Path> paths_;
  std::vector<Stack> stacks_;
};

}  // namespace assay::analysis
