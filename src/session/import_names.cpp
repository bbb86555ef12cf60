#include "session/import_names.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace assay::session {
namespace {

// The kernel's addresses change with every boot; only a symbol at the same place proves them.
bool lies_at(const KernelPlace& place) {
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

}  // namespace

ImportNames::ImportNames(bool wanted, const std::string& cache_dir) : wanted_(wanted) {
  symbol::Options options;
  options.cache_dir = cache_dir;
  symbolizer_ = symbol::Symbolizer::create(options);
}

void ImportNames::set_kernel_place(const KernelPlace& place) {
  if (place_ == place) return;
  if (kernel_reader_.joinable()) kernel_reader_.join();
  place_ = place;
  this_kernel_.reset();
}

void ImportNames::expect_kernel(const model::Module& kernel) {
  if (!wanted_ || !place_ || kernel_reader_.joinable()) return;
  kernel_reader_ = std::jthread([this, kernel] {
    this_kernel_ = lies_at(*place_);
    if (!*this_kernel_) return;
    symbolizer_->add_module(0, {0, 0, 0, kernel.id}, kernel);
    symbolizer_->resolve(kernel.id, place_->address);  // reads the names
  });
}

bool ImportNames::is_this_kernel() {
  if (kernel_reader_.joinable()) kernel_reader_.join();
  if (!this_kernel_) this_kernel_ = place_ && lies_at(*place_);
  return *this_kernel_;
}

void ImportNames::name_frames(formats::RunBuilder& builder) {
  if (!wanted_) return;
  std::vector<model::Frame> frames;
  std::vector<model::FrameId> ids;
  for (uint32_t i = 0; i < builder.frames().all().size(); ++i) {
    model::FrameId id{i};
    const model::Frame& frame = builder.frames()[id];
    if (builder.is_named(id) || !can_name(builder, frame.module)) continue;
    frames.push_back(frame);
    ids.push_back(id);
  }
  auto names = symbolizer_->resolve_all(frames);
  for (size_t i = 0; i < ids.size(); ++i) builder.name(ids[i], names[i]);
  note_missing(builder);
}

bool ImportNames::can_name(const formats::RunBuilder& builder, model::ModuleId id) {
  auto [it, added] = usable_.try_emplace(id, false);
  if (added) it->second = open(builder.modules()[id]);
  if (!it->second) ++unnamed_[id];
  return it->second;
}

bool ImportNames::open(const model::Module& module) {
  using enum model::ModuleKind;
  if (module.kind == marker || module.kind == anonymous) return false;
  if (module.kind == kernel && !is_this_kernel()) return false;
  if (module.kind == vdso && module.build_id.empty() && !is_this_kernel()) return false;
  if (module.kind == elf && !module.path.starts_with('/')) return false;
  symbolizer_->add_module(0, {0, 0, 0, module.id}, module);
  return module.kind != elf || symbolizer_->module_status(module.id).opened;
}

void ImportNames::note_missing(formats::RunBuilder& builder) {
  std::string list;
  for (const auto& [id, count] : unnamed_) {
    const model::Module& module = builder.modules()[id];
    if (module.kind == model::ModuleKind::marker || module.path == "[unknown]") continue;
    list += fmt::format("{}{} ({} addresses)", list.empty() ? "" : ", ", module.path, count);
    if (list.size() > 300) break;
  }
  if (list.empty()) return;
  builder.note("names",
               "this machine does not have the imported code, or has another build: " + list,
               "import where it was recorded");
}

}  // namespace assay::session
