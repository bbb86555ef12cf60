#include "run/names.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/heap/allocation_names.h"

namespace assay::run {
namespace {

std::string unnamed(const Contents& contents, model::FrameId id) {
  const model::Frame& frame = contents.frames[id.value];
  const model::Module& module = contents.modules[frame.module.value];
  if (module.kind == model::ModuleKind::marker) {
    bool known = frame.address > 0 && frame.address < model::kStackEndCount;
    return known ? std::string(model::stack_end_text(static_cast<model::StackEnd>(frame.address)))
                 : "[unknown end of stack]";
  }
  std::string_view path = module.path;
  size_t slash = path.starts_with('[') ? std::string_view::npos : path.rfind('/');
  std::string_view base = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return fmt::format("{}+0x{:x}", base, frame.address);
}

}  // namespace

std::string frame_name(const Contents& contents, model::FrameId frame) {
  const auto& locations = contents.locations[frame.value];
  if (locations.empty() || locations[0].function.empty()) return unnamed(contents, frame);
  return locations[0].function;
}

namespace {

// Calls visit(name) for every function of the stack, leaf first; false from it ends the walk.
template <class Visit>
void visit_names(const Contents& contents, model::StackId stack, Visit visit) {
  for (; stack.value != 0; stack = contents.stacks[stack.value].parent) {
    model::FrameId frame = contents.stacks[stack.value].frame;
    if (!visit(frame_name(contents, frame))) return;
    const auto& locations = contents.locations[frame.value];
    for (size_t i = 1; i < locations.size(); ++i) {
      if (!visit(locations[i].function)) return;
    }
  }
}

}  // namespace

std::string allocation_site(const Contents& contents, model::StackId stack) {
  std::string leaf, plumbing, site;
  visit_names(contents, stack, [&](const std::string& name) {
    if (leaf.empty()) leaf = name;
    if (model::is_allocation_function(name)) return true;
    if (plumbing.empty()) plumbing = name;
    if (model::is_library_plumbing(name)) return true;
    site = name;
    return false;
  });
  if (!site.empty()) return site;
  return plumbing.empty() ? leaf : plumbing;
}

std::string stack_text(const Contents& contents, model::StackId stack) {
  // Collected leaf first, then turned round.
  std::vector<std::string> names;
  visit_names(contents, stack, [&](const std::string& name) {
    names.push_back(name);
    return true;
  });
  std::string text;
  for (size_t i = names.size(); i-- > 0;) {
    std::replace(names[i].begin(), names[i].end(), ';', ':');
    text += names[i];
    if (i != 0) text += ';';
  }
  return text;
}

std::string_view fd_kind_name(model::FdKind kind) {
  static constexpr std::array<std::string_view, 17> kNames{"",
                                                           "file",
                                                           "pipe",
                                                           "socket_listen",
                                                           "socket_stream",
                                                           "socket_datagram",
                                                           "socket_unix",
                                                           "epoll",
                                                           "eventfd",
                                                           "timerfd",
                                                           "signalfd",
                                                           "inotify",
                                                           "device",
                                                           "io_uring",
                                                           "other",
                                                           "socket_accepted",
                                                           "socket_connected"};
  size_t index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "other";
}

std::string wait_flags_text(uint16_t flags) {
  static constexpr std::array<std::string_view, 6> kNames{
      "preempted", "open_start", "open_end", "stack_snapshot", "runqueue_known", "new_thread"};
  std::string text;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (!(flags >> i & 1)) continue;
    if (!text.empty()) text += ',';
    text += kNames[i];
  }
  return text;
}

}  // namespace assay::run
