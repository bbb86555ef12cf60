#include "analysis/profile/call_tree.h"

#include <unordered_map>

#include <fmt/format.h>

namespace assay::analysis {
namespace {

constexpr size_t kDeepestShown = 1024;

struct FunctionKey {
  uint32_t module;
  std::string_view name;
  bool operator==(const FunctionKey&) const = default;
};
struct FunctionKeyHash {
  size_t operator()(const FunctionKey& key) const noexcept {
    return std::hash<std::string_view>()(key.name) ^ key.module * 0x9E3779B97F4A7C15ull;
  }
};

std::string_view last_part(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == path.npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

CodeKind code_kind(const model::Module* module) {
  if (!module) return CodeKind::user;
  if (module->kind == model::ModuleKind::kernel) return CodeKind::kernel;
  return module->kind == model::ModuleKind::marker ? CodeKind::marker : CodeKind::user;
}

model::StackEnd marker_end(uint64_t address) {
  // A marker this version does not know still says that the stack is not complete.
  return address > 0 && address < model::kStackEndCount ? static_cast<model::StackEnd>(address)
                                                        : model::StackEnd::lost;
}

// (parent, function) → path, open addressing. Every stack of the run passes through it, up to
// millions, where node-based std::unordered_map takes most of the analysis' time.
class PathTable {
 public:
  PathTable() : slots_(1 << 12) {}

  PathIndex push(std::vector<CallTree::Path>& paths, PathIndex parent, FunctionIndex function) {
    if (paths.size() * 2 > slots_.size()) grow(paths);
    for (size_t i = home(parent, function);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i] == 0) {
        slots_[i] = static_cast<PathIndex>(paths.size());
        paths.push_back({parent, function});
        return slots_[i];
      }
      const CallTree::Path& known = paths[slots_[i]];
      if (known.parent == parent && known.function == function) return slots_[i];
    }
  }

 private:
  size_t home(PathIndex parent, FunctionIndex function) const {
    uint64_t key = uint64_t{parent} << 32 | function;
    key = (key ^ key >> 29) * 0x9E3779B97F4A7C15ull;
    return (key ^ key >> 32) & (slots_.size() - 1);
  }
  void grow(const std::vector<CallTree::Path>& paths) {
    slots_.assign(slots_.size() * 4, 0);
    for (PathIndex path = 1; path < paths.size(); ++path) {
      size_t i = home(paths[path].parent, paths[path].function);
      while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = path;
    }
  }
  std::vector<PathIndex> slots_;  // 0: free, since no path is pushed as the empty one
};

}  // namespace

CallTree::CallTree(const run::Contents& run) : run_(run), paths_(1) {
  name_frames();
  lay_paths();
}

const model::Module* CallTree::module_of(const model::Frame& frame) const {
  return frame.module.value < run_.modules.size() ? &run_.modules[frame.module.value] : nullptr;
}

Function CallTree::unnamed(const model::Frame& frame) {
  const model::Module* module = module_of(frame);
  Function function;
  function.kind = code_kind(module);
  function.module = module ? last_part(module->path) : "[unknown]";
  if (function.kind == CodeKind::marker) {
    function.name = model::stack_end_text(marker_end(frame.address));
    return function;
  }
  function.named = false;
  function.name = composed_.emplace_back(fmt::format("{}+{:#x}", function.module, frame.address));
  return function;
}

void CallTree::name_frames() {
  std::unordered_map<FunctionKey, FunctionIndex, FunctionKeyHash> known;
  auto intern = [&](uint32_t module, const Function& function) {
    auto [it, added] =
        known.try_emplace({module, function.name}, static_cast<uint32_t>(functions_.size()));
    if (added) {
      functions_.push_back(function);
    } else if (Function& old = functions_[it->second]; old.file.empty()) {
      old.file = function.file;
      old.line = function.line;
    }
    of_frame_.push_back(it->second);
  };
  first_.reserve(run_.frames.size() + 1);
  for (size_t i = 0; i < run_.frames.size(); ++i) {
    first_.push_back(static_cast<uint32_t>(of_frame_.size()));
    const model::Frame& frame = run_.frames[i];
    const model::Module* module = module_of(frame);
    if (i < run_.locations.size() && code_kind(module) != CodeKind::marker) {
      const std::vector<model::Location>& inlines = run_.locations[i];
      for (auto location = inlines.rbegin(); location != inlines.rend(); ++location) {
        if (location->function.empty()) continue;
        intern(frame.module.value,
               {location->function, module ? last_part(module->path) : "[unknown]", location->file,
                location->function_line, code_kind(module), true});
      }
    }
    if (of_frame_.size() == first_.back()) intern(frame.module.value, unnamed(frame));
  }
  first_.push_back(static_cast<uint32_t>(of_frame_.size()));
}

std::span<const FunctionIndex> CallTree::functions_of(model::FrameId frame) const {
  if (frame.value + size_t{1} >= first_.size()) return {};
  return std::span(of_frame_).subspan(first_[frame.value],
                                      first_[frame.value + 1] - first_[frame.value]);
}

void CallTree::lay_paths() {
  PathTable table;
  stacks_.resize(std::max<size_t>(run_.stacks.size(), 1));
  for (size_t i = 1; i < run_.stacks.size(); ++i) {
    const model::StackNode& node = run_.stacks[i];
    // A parent always precedes its child; anything else is a damaged file, and would loop.
    size_t parent = node.parent.value < i ? node.parent.value : 0;
    Stack& stack = stacks_[i];
    stack = stacks_[parent];
    for (FunctionIndex function : functions_of(node.frame)) {
      stack.path = table.push(paths_, stack.path, function);
    }
    if (parent == 0 && stack.path != 0 &&
        functions_[paths_[stack.path].function].kind == CodeKind::marker) {
      stack.end = marker_end(run_.frames[node.frame.value].address);
    }
  }
}

const Function* CallTree::leaf_of(model::StackId stack) const {
  PathIndex path = path_of(stack);
  return path == 0 ? nullptr : &functions_[paths_[path].function];
}

std::vector<FrameText> CallTree::texts_of(model::StackId stack) const {
  std::vector<FrameText> texts;
  size_t at = stack.value < stacks_.size() ? stack.value : 0;
  while (at != 0 && texts.size() < kDeepestShown) {
    const model::StackNode& node = run_.stacks[at];
    auto functions = functions_of(node.frame);
    size_t shown = 0;
    for (auto function = functions.rbegin(); function != functions.rend(); ++function, ++shown) {
      const Function& known = functions_[*function];
      FrameText text{std::string(known.name),
                     std::string(known.module),
                     "",
                     0,
                     known.kind,
                     false,
                     known.named};
      if (known.named && known.kind != CodeKind::marker) {
        // The same order as the locations, innermost first; unnamed locations were skipped.
        size_t skipped = 0;
        for (const model::Location& location : run_.locations[node.frame.value]) {
          if (location.function.empty() || skipped++ != shown) continue;
          text.file = location.file;
          text.line = location.line;
          text.inlined = location.inlined;
        }
      }
      texts.push_back(std::move(text));
    }
    at = node.parent.value < at ? node.parent.value : 0;
  }
  return texts;
}

}  // namespace assay::analysis
