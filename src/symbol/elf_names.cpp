// The names of one ELF file: DWARF where there is any, then symbols, then unwind ranges, then
// offsets.
#include <mutex>

#include <fmt/format.h>

#include "symbol/function_ranges.h"
#include "symbol/name_source.h"
#include "symbol/symbol_table.h"

namespace assay::symbol {
namespace {

class ElfNames final : public NameSource {
 public:
  ElfNames(const Options& options, model::Module module, pid_t pid, Result<os::ModuleFile> opened)
      : options_(options), module_(std::move(module)), pid_(pid) {
    if (!opened) {
      status_.problem = opened.error().what;
      return;
    }
    status_.opened = true;
    fd_ = std::move(opened->fd);
  }
  ElfNames(const Options& options, model::Module module, std::string image)
      : options_(options), module_(std::move(module)), image_(std::move(image)) {
    status_.opened = !image_.empty();
    if (image_.empty()) status_.problem = "this process has no vdso";
  }

  std::vector<model::Location> resolve(uint64_t offset) override {
    std::lock_guard lock(mutex_);
    parse();
    model::Location location;
    if (file_ == nullptr) {
      location.function = offset_name(module_.path, offset);
      return {location};
    }
    uint64_t address = file_->to_address(offset).value_or(offset);
    if (const Symbol* symbol = functions_.find(address)) {
      set_names(location, symbol->name);
    } else if (auto range = ranges().find(address)) {
      location.function = fmt::format("{}!fn_{:x}", module_base_name(module_.path), range->start);
    } else {
      location.function = offset_name(module_.path, address);
    }
    return {location};
  }

  std::string resolve_data(uint64_t address) override {
    std::lock_guard lock(mutex_);
    parse();
    if (file_ == nullptr) return "";
    if (!data_) {
      data_.emplace(SymbolTable::Kind::data);
      data_->add(*file_);
      data_->finish();
    }
    address += static_cast<uint64_t>(file_->code_bias());
    const Symbol* symbol = data_->find(address);
    if (symbol == nullptr) return "";
    model::Location location;
    set_names(location, symbol->name);
    if (address == symbol->start) return location.function;
    return fmt::format("{}+{:#x}", location.function, address - symbol->start);
  }

  ModuleStatus status() override {
    std::lock_guard lock(mutex_);
    parse();
    return status_;
  }

 private:
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
    status_.has_symbols = functions_.add(*file_);
    if (status_.has_symbols)
      status_.source = file_->find(".symtab") != nullptr ? "symtab" : "dynsym";
    add_plt_symbols(*file_, functions_, plt_names_);
    functions_.finish();
  }
  void refuse(const std::string& why) {
    status_.opened = false;
    status_.problem = why;
  }
  const FunctionRanges& ranges() {
    if (!ranges_) ranges_.emplace(*file_);
    return *ranges_;
  }

  const Options options_;
  const model::Module module_;
  const pid_t pid_ = 0;
  std::mutex mutex_;
  UniqueFd fd_;        // until parsed
  std::string image_;  // until parsed
  bool parsed_ = false;
  ModuleStatus status_;
  std::unique_ptr<ElfFile> file_;
  SymbolTable functions_{SymbolTable::Kind::functions};
  std::vector<std::string> plt_names_;
  std::optional<SymbolTable> data_;
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
