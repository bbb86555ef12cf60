#include "symbol/symbolizer.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#include "symbol/file_access.h"
#include "symbol/name_source.h"

namespace assay::symbol {
namespace {

constexpr size_t kMaxThreads = 8;

class SymbolizerImpl final : public Symbolizer {
 public:
  explicit SymbolizerImpl(Options options) : options_(std::move(options)) {
    if (!options_.files) options_.files = direct_file_access();
  }

  void add_module(pid_t pid, const model::Mapping& mapping, const model::Module& module) override {
    if (find(module.id) != nullptr) return;
    std::shared_ptr<NameSource> names = open(pid, mapping, module);
    std::unique_lock lock(mutex_);
    sources_.try_emplace(module.id, std::move(names));
  }

  std::vector<model::Location> resolve(model::ModuleId module, uint64_t address) override {
    if (auto names = find(module)) return names->resolve(address);
    return {};
  }

  std::vector<std::vector<model::Location>> resolve_all(
      std::span<const model::Frame> frames) override {
    // By module, then by address: neighbours share a unit, which is then read once and soon
    // forgotten.
    std::vector<uint32_t> order(frames.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return frames[a] < frames[b]; });
    std::vector<std::span<const uint32_t>> groups;
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && frames[order[end]].module == frames[order[begin]].module) ++end;
      groups.emplace_back(order.data() + begin, end - begin);
    }
    begin_with_longest(frames, groups);
    std::vector<std::vector<model::Location>> out(frames.size());
    std::atomic<size_t> next = 0;
    auto work = [&] {
      for (size_t i = next++; i < groups.size(); i = next++) {
        for (uint32_t at : groups[i]) out[at] = resolve(frames[at].module, frames[at].address);
      }
    };
    size_t helpers =
        std::min<size_t>({groups.size(), std::thread::hardware_concurrency(), kMaxThreads});
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < helpers; ++i) threads.emplace_back(work);
    work();
    threads.clear();
    return out;
  }

  bool has_name(model::ModuleId module, uint64_t address) override {
    auto names = find(module);
    return names == nullptr || names->has_name(address);
  }

  std::string resolve_data(model::ModuleId module, uint64_t address) override {
    auto names = find(module);
    return names ? names->resolve_data(address) : "";
  }

  ModuleStatus module_status(model::ModuleId module) const override {
    if (auto names = find(module)) return names->status();
    ModuleStatus unknown;
    unknown.problem = "the module was never announced";
    return unknown;
  }

 private:
  // The longest work begins first, so that all threads end at about the same time.
  void begin_with_longest(std::span<const model::Frame> frames,
                          std::vector<std::span<const uint32_t>>& groups) const {
    constexpr uint64_t kBytesPerFrame = 1000;  // what naming one address costs, in bytes read
    auto effort = [&](std::span<const uint32_t> group) {
      auto names = find(frames[group.front()].module);
      return group.size() * kBytesPerFrame + (names ? names->effort_bytes() : 0);
    };
    std::vector<std::pair<uint64_t, std::span<const uint32_t>>> work;
    for (auto group : groups) work.emplace_back(effort(group), group);
    std::stable_sort(work.begin(), work.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < work.size(); ++i) groups[i] = work[i].second;
  }

  std::shared_ptr<NameSource> find(model::ModuleId module) const {
    std::shared_lock lock(mutex_);
    auto it = sources_.find(module);
    return it == sources_.end() ? nullptr : it->second;
  }

  std::unique_ptr<NameSource> open(pid_t pid, const model::Mapping& mapping,
                                   const model::Module& module) const {
    switch (module.kind) {
      case model::ModuleKind::kernel:
        return make_kernel_names(options_);
      case model::ModuleKind::vdso:
        return make_vdso_names(options_, module);
      case model::ModuleKind::marker:
        return make_marker_names();
      case model::ModuleKind::anonymous:
        return make_jit_names(options_, pid, module);
      case model::ModuleKind::elf:
        break;
    }
    return make_elf_names(options_, module, pid, options_.files->open_module(pid, mapping, module));
  }

  Options options_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<model::ModuleId, std::shared_ptr<NameSource>> sources_;
};

}  // namespace

std::unique_ptr<Symbolizer> Symbolizer::create(const Options& options) {
  return std::make_unique<SymbolizerImpl>(options);
}

}  // namespace assay::symbol
