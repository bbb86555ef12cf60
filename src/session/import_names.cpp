#include "session/import_names.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

#include "symbol/symbolizer.h"

namespace assay::session {
namespace {

// The kernel's addresses change with every boot; only a symbol at the same place proves them.
bool is_this_kernel(const KernelPlace& place) {
  if (place.symbol.empty() || place.address == 0) return false;
  std::ifstream kallsyms("/proc/kallsyms");
  for (std::string line; std::getline(kallsyms, line);) {
    // ffffffff81000000 T _text
    size_t name = line.find(' ', line.find(' ') + 1);
    if (name == line.npos || line.compare(name + 1, std::string::npos, place.symbol) != 0) continue;
    uint64_t address = 0;
    std::from_chars(line.data(), line.data() + line.find(' '), address, 16);
    return address == place.address;
  }
  return false;
}

class Namer {
 public:
  Namer(formats::RunBuilder& builder, const std::string& cache_dir, bool this_kernel)
      : builder_(builder), this_kernel_(this_kernel) {
    symbol::Options options;
    options.cache_dir = cache_dir;
    symbolizer_ = symbol::Symbolizer::create(options);
  }

  void run() {
    std::vector<model::Frame> frames;
    std::vector<model::FrameId> ids;
    for (uint32_t i = 0; i < builder_.frames().all().size(); ++i) {
      model::FrameId id{i};
      const model::Frame& frame = builder_.frames()[id];
      if (builder_.is_named(id) || !can_name(frame.module)) continue;
      frames.push_back(frame);
      ids.push_back(id);
    }
    auto names = symbolizer_->resolve_all(frames);
    for (size_t i = 0; i < ids.size(); ++i) builder_.name(ids[i], names[i]);
    note_missing();
  }

 private:
  bool can_name(model::ModuleId id) {
    auto [it, added] = usable_.try_emplace(id, false);
    if (added) it->second = open(builder_.modules()[id]);
    if (!it->second) ++unnamed_[id];
    return it->second;
  }

  bool open(const model::Module& module) {
    using enum model::ModuleKind;
    if (module.kind == marker || module.kind == anonymous) return false;
    if (module.kind == kernel && !this_kernel_) return false;
    if (module.kind == vdso && module.build_id.empty() && !this_kernel_) return false;
    if (module.kind == elf && !module.path.starts_with('/')) return false;
    symbolizer_->add_module(0, {0, 0, 0, module.id}, module);
    return module.kind != elf || symbolizer_->module_status(module.id).opened;
  }

  void note_missing() {
    std::string list;
    for (const auto& [id, count] : unnamed_) {
      const model::Module& module = builder_.modules()[id];
      if (module.kind == model::ModuleKind::marker || module.path == "[unknown]") continue;
      list += fmt::format("{}{} ({} addresses)", list.empty() ? "" : ", ", module.path, count);
      if (list.size() > 300) break;
    }
    if (list.empty()) return;
    builder_.note("names",
                  "this machine does not have the imported code, or has another build: " + list,
                  "import where it was recorded");
  }

  formats::RunBuilder& builder_;
  bool this_kernel_;
  std::unique_ptr<symbol::Symbolizer> symbolizer_;
  std::map<model::ModuleId, bool> usable_;
  std::map<model::ModuleId, uint64_t> unnamed_;
};

}  // namespace

void name_imported_frames(formats::RunBuilder& builder, const std::string& cache_dir,
                          const std::optional<KernelPlace>& kernel) {
  Namer(builder, cache_dir, kernel && is_this_kernel(*kernel)).run();
}

}  // namespace assay::session
