#include "symbol/name_source.h"

#include <mutex>

#include <fmt/format.h>

#include "model/stack.h"
#include "symbol/demangle/demangle.h"
#include "symbol/kernel/kernel_cache.h"
#include "symbol/kernel/kernel_symbols.h"

namespace assay::symbol {
namespace {

class KernelNames final : public NameSource {
 public:
  explicit KernelNames(const Options& options)
      : path_(options.kallsyms), cache_(options.cache_dir, options.boot_id_file) {}

  std::vector<model::Location> resolve(uint64_t address) override {
    model::Location location;
    KernelSymbol symbol;
    if (find_code(address, symbol)) {
      location.function = symbol.name;
      if (!symbol.module.empty())
        location.system_name = fmt::format("{} [{}]", symbol.name, symbol.module);
    } else {
      location.function = offset_name("[kernel]", address);
    }
    return {location};
  }

  std::string resolve_data(uint64_t address) override {
    KernelSymbol symbol;
    if (!table().find_data(address, symbol)) return "";
    uint64_t distance = address - symbol.start;
    return distance == 0 ? std::string(symbol.name)
                         : fmt::format("{}+{:#x}", symbol.name, distance);
  }

  ModuleStatus status() override {
    const KernelSymbols& symbols = table();
    ModuleStatus out;
    out.opened = symbols.size() > 0;
    out.has_symbols = out.opened;
    if (out.opened) out.source = path_;
    out.problem = symbols.problem();
    return out;
  }

 private:
  const KernelSymbols& table() {
    bool is_kept = core() != nullptr;
    std::call_once(once_, [&] {
      table_ = KernelSymbols::load(path_);
      if (!is_kept) cache_.keep(table_);
    });
    return table_;
  }
  const KernelText* core() {
    std::call_once(core_once_, [this] { core_ = cache_.load(); });
    return core_ ? &*core_ : nullptr;
  }
  // What the cache answers as well is not asked of the whole table, which takes longer to have.
  bool find_code(uint64_t address, KernelSymbol& out) {
    const KernelText* kept = core();
    if (kept != nullptr && kept->range().has(address)) return kept->find_code(address, out);
    return table().find_code(address, out);
  }

  std::string path_;
  KernelCache cache_;
  std::once_flag once_, core_once_;
  KernelSymbols table_;
  std::optional<KernelText> core_;
};

class MarkerNames final : public NameSource {
 public:
  std::vector<model::Location> resolve(uint64_t address) override {
    model::Location location;
    if (address < model::kStackEndCount) {
      location.function = model::stack_end_text(static_cast<model::StackEnd>(address));
    }
    if (location.function.empty()) location.function = fmt::format("[marker {}]", address);
    return {location};
  }
  ModuleStatus status() override {
    ModuleStatus out;
    out.opened = out.has_symbols = true;
    out.source = "assay";
    return out;
  }
};

}  // namespace

std::unique_ptr<NameSource> make_kernel_names(const Options& options) {
  return std::make_unique<KernelNames>(options);
}

std::unique_ptr<NameSource> make_marker_names() {
  return std::make_unique<MarkerNames>();
}

std::string module_base_name(const std::string& path) {
  std::string_view name = path;
  if (name.ends_with(" (deleted)")) name.remove_suffix(10);
  size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  return name.empty() ? "unknown" : std::string(name);
}

std::string offset_name(const std::string& path, uint64_t address) {
  return fmt::format("{}+{:#x}", module_base_name(path), address);
}

void set_names(model::Location& location, std::string_view linkage_name) {
  location.function = demangle(linkage_name);
  location.system_name = location.function == linkage_name ? "" : std::string(linkage_name);
}

}  // namespace assay::symbol
