// The names of one ELF file: DWARF where there is any, then symbols, then unwind ranges, then
// offsets.
#include <mutex>

#include <fmt/format.h>

#include "elf/decompress.h"
#include "symbol/dwarf/debug_info.h"
#include "symbol/elf/debug_files.h"
#include "symbol/elf/function_ranges.h"
#include "symbol/elf/symbol_table.h"
#include "symbol/name_source.h"

namespace assay::symbol {
namespace {

constexpr uint64_t kMaxMiniDebugBytes = 256 << 20;

std::vector<PcRange> code_ranges(const ElfFile& file) {
  std::vector<PcRange> out;
  for (const auto& section : file.sections()) {
    if (section.executable() && section.size <= UINT64_MAX - section.address) {
      out.push_back({section.address, section.address + section.size});
    }
  }
  return out;
}

class ElfNames final : public NameSource {
 public:
  ElfNames(const Options& options, model::Module module, pid_t pid, Result<os::ModuleFile> opened)
      : options_(options),
        module_(std::move(module)),
        files_(pid, clean_path(module_.path), options.files, options.debuginfod) {
    if (!opened) {
      status_.problem = opened.error().what;
      return;
    }
    status_.opened = true;
    build_id_ = opened->build_id;
    fd_ = std::move(opened->fd);
  }
  ElfNames(const Options& options, model::Module module, std::string image)
      : options_(options),
        module_(std::move(module)),
        image_(std::move(image)),
        files_(0, "", options.files, false) {
    status_.opened = !image_.empty();
    if (image_.empty()) status_.problem = "this process has no vdso";
  }

  std::vector<model::Location> resolve(uint64_t offset) override {
    std::lock_guard lock(mutex_);
    parse();
    std::vector<model::Location> out;
    if (file_ == nullptr) {
      out.emplace_back().function = offset_name(module_.path, offset);
      return out;
    }
    uint64_t address = file_->to_address(offset).value_or(offset);
    if (debug_) debug_->find(address, options_.inlines, out);
    if (out.empty()) out.emplace_back();
    // The outermost location is the function itself; DWARF may know only its line.
    for (auto& location : out) {
      if (location.function.empty()) name_without_dwarf(address, location);
    }
    prefer_public_name(address, out.back());
    return out;
  }

  std::string resolve_data(uint64_t address) override {
    std::lock_guard lock(mutex_);
    parse();
    if (file_ == nullptr) return "";
    if (!data_) {
      data_.emplace(SymbolTable::Kind::data);
      add_symbols(*data_);
    }
    address += static_cast<uint64_t>(file_->code_bias());
    const Symbol* symbol = data_->find(address);
    if (symbol == nullptr) return "";
    model::Location location;
    set_names(location, symbol->name);
    if (address == symbol->start) return location.function;
    return fmt::format("{}+{:#x}", location.function, address - symbol->start);
  }

  uint64_t effort_bytes() override {
    std::lock_guard lock(mutex_);
    parse();
    return debug_ ? debug_->effort_bytes() : 0;
  }

  ModuleStatus status() override {
    std::lock_guard lock(mutex_);
    parse();
    ModuleStatus out = status_;
    if (out.problem.empty()) out.problem = files_.problem();
    if (out.problem.empty() && file_) out.problem = file_->refusal();
    return out;
  }

 private:
  static std::string clean_path(const std::string& path) {
    constexpr std::string_view kDeleted = " (deleted)";
    return path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
  }

  void parse() {
    if (parsed_ || !status_.opened) return;
    parsed_ = true;
    Result<std::unique_ptr<ByteSource>> source = fd_.valid()
                                                     ? ByteSource::from_file(std::move(fd_))
                                                     : ByteSource::from_memory(std::move(image_));
    if (!source) return refuse(source.error().what);
    auto file = ElfFile::open(std::move(*source));
    if (!file) return refuse(file.error().what);
    file_ = std::move(*file);
    find_debug_info();
    describe();
  }
  void refuse(const std::string& why) {
    status_.opened = false;
    status_.problem = why;
  }

  void find_debug_info() {
    if (build_id_.empty()) build_id_ = file_->build_id();
    bool own = file_->has_bytes(".debug_info");
    if (!own) debug_file_ = files_.find_debug(*file_, build_id_);
    ElfFile* holder = own ? file_.get() : debug_file_.file.get();
    if (holder == nullptr || holder->relocatable() || !holder->has_bytes(".debug_info")) return;
    const std::string& path = own ? module_.path : debug_file_.path;
    debug_ = std::make_unique<DebugInfo>(*holder, path, code_ranges(*file_), files_,
                                         options_.cache_dir, build_id_);
  }
  void describe() {
    bool mini = file_->find(".gnu_debugdata") != nullptr;
    bool symtab = file_->find(".symtab") != nullptr;
    bool debug_symtab = debug_file_.file && debug_file_.file->find(".symtab") != nullptr;
    status_.has_symbols = symtab || debug_symtab || mini || file_->find(".dynsym") != nullptr;
    status_.has_lines = debug_ != nullptr;
    if (debug_file_.file) {
      status_.source = "debug file " + debug_file_.path;
    } else if (debug_) {
      status_.source = "dwarf";
    } else if (status_.has_symbols) {
      status_.source = symtab ? "symtab" : mini ? "gnu_debugdata" : "dynsym";
    }
  }

  // DWARF calls malloc "__GI___libc_malloc", as the C library's authors do; the symbol table also
  // has the name that everyone else knows, and that a module without DWARF would get.
  void prefer_public_name(uint64_t address, model::Location& location) {
    if (location.inlined || !location.system_name.empty() || !location.function.starts_with('_'))
      return;
    model::Location other;
    name_without_dwarf(address, other);
    bool same = other.function.starts_with(location.function) ||
                other.function.find('!') != std::string::npos ||
                other.function.find('+') != std::string::npos;
    if (same || !other.system_name.empty()) return;
    location.system_name = std::exchange(location.function, other.function);
  }

  void name_without_dwarf(uint64_t address, model::Location& location) {
    if (!functions_) {
      functions_.emplace(SymbolTable::Kind::functions);
      add_plt_symbols(*file_, *functions_, plt_names_);
      add_symbols(*functions_);
    }
    if (const Symbol* symbol = functions_->find(address)) return set_names(location, symbol->name);
    if (!ranges_) ranges_.emplace(*file_);
    if (auto range = ranges_->find(address)) {
      location.function = fmt::format("{}!fn_{:x}", module_base_name(module_.path), range->start);
    } else {
      location.function = offset_name(module_.path, address);
    }
  }

  void add_symbols(SymbolTable& table) {
    table.add(*file_);
    if (debug_file_.file) table.add(*debug_file_.file);
    if (!mini_looked_for_) {
      mini_looked_for_ = true;
      open_mini_debug();
    }
    if (mini_) table.add(*mini_);
    table.finish();
  }
  // .gnu_debugdata: a whole small ELF file with the local functions' symbols, compressed.
  void open_mini_debug() {
    SectionBytes section = file_->bytes(".gnu_debugdata");
    if (!section) return;
    auto bytes = elf::inflate_xz(section.all(), kMaxMiniDebugBytes);
    if (!bytes) {
      status_.problem = bytes.error().what;
      return;
    }
    auto file = ElfFile::open(ByteSource::from_memory(std::move(*bytes)));
    if (file) mini_ = std::move(*file);
  }

  const Options options_;
  const model::Module module_;
  std::mutex mutex_;
  UniqueFd fd_;        // until parsed
  std::string image_;  // until parsed
  std::string build_id_;
  bool parsed_ = false;
  bool mini_looked_for_ = false;
  ModuleStatus status_;
  DebugFiles files_;
  std::unique_ptr<ElfFile> file_;
  FoundFile debug_file_;
  std::unique_ptr<ElfFile> mini_;
  std::unique_ptr<DebugInfo> debug_;
  std::vector<std::string> plt_names_;
  std::optional<SymbolTable> functions_, data_;
  std::optional<FunctionRanges> ranges_;
};

}  // namespace

std::unique_ptr<NameSource> make_elf_names(const Options& options, const model::Module& module,
                                           pid_t pid, Result<os::ModuleFile> opened) {
  return std::make_unique<ElfNames>(options, module, pid, std::move(opened));
}

std::unique_ptr<NameSource> make_vdso_names(const Options& options, const model::Module& module) {
  return std::make_unique<ElfNames>(options, module, os::vdso_image().bytes);
}

}  // namespace assay::symbol
