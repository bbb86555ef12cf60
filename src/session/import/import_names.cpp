#include "session/import/import_names.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>

#include "base/file_door.h"

namespace assay::session {
namespace {

// The kernel's addresses change with every boot; only a symbol at the same place proves them.
bool lies_at(const KernelPlace& place) {
  if (place.symbol.empty() || place.address == 0) return false;
  auto found = file_door().open("/proc/kallsyms", Purpose::kernel_symbols);
  if (!found) return false;
  std::unique_ptr<FILE, int (*)(FILE*)> kallsyms(::fdopen(found->fd.get(), "r"), ::fclose);
  if (!kallsyms) return false;
  (void)found->fd.release();
  char text[1024];
  while (std::fgets(text, sizeof text, kallsyms.get()) != nullptr) {
    std::string_view line(text);
    if (line.ends_with('\n')) line.remove_suffix(1);
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
  wait();
  place_ = place;
  this_kernel_.reset();
  // What was named by another kernel's place is named anew.
  next_frame_ = 0;
  usable_.clear();
  unnamed_.clear();
  named_.clear();
}

void ImportNames::name_ahead(const formats::RunBuilder& builder) {
  using namespace std::chrono_literals;
  if (!wanted_) return;
  if (ahead_.valid() && ahead_.wait_for(0s) != std::future_status::ready) return;
  Batch batch = take_batch(builder);
  if (batch.ids.empty()) return;
  ahead_ = std::async(std::launch::async, [this, batch = std::move(batch)]() mutable {
    name_slowly(std::move(batch));
  });
}

void ImportNames::wait() {
  if (ahead_.valid()) ahead_.get();
}

ImportNames::Batch ImportNames::take_batch(const formats::RunBuilder& builder) {
  Batch batch;
  for (; next_frame_ < builder.frames().all().size(); ++next_frame_) {
    model::FrameId id{next_frame_};
    if (builder.is_named(id)) continue;
    const model::Frame& frame = builder.frames()[id];
    batch.ids.push_back(id);
    batch.frames.push_back(frame);
    batch.modules.try_emplace(frame.module, builder.modules()[frame.module]);
  }
  return batch;
}

void ImportNames::choose(Batch& batch) {
  size_t kept = 0;
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    if (!can_name(batch.modules.at(batch.frames[i].module))) continue;
    batch.ids[kept] = batch.ids[i];
    batch.frames[kept++] = batch.frames[i];
  }
  batch.ids.resize(kept);
  batch.frames.resize(kept);
}

// By one thread: another reads samples meanwhile. Neighbours share what must be read of a file.
void ImportNames::name_slowly(Batch batch) {
  choose(batch);
  std::vector<size_t> order(batch.ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return batch.frames[i]; });
  size_t before = named_.size();
  for (model::FrameId id : batch.ids) named_.push_back({id, {}});
  for (size_t i : order) {
    const model::Frame& frame = batch.frames[i];
    named_[before + i].locations = symbolizer_->resolve(frame.module, frame.address);
  }
}

void ImportNames::name_frames(formats::RunBuilder& builder) {
  if (!wanted_) return;
  wait();
  Batch rest = take_batch(builder);
  choose(rest);
  auto names = symbolizer_->resolve_all(rest.frames);
  for (const Named& named : named_) builder.name(named.frame, named.locations);
  for (size_t i = 0; i < rest.ids.size(); ++i) builder.name(rest.ids[i], names[i]);
  note_missing(builder);
}

bool ImportNames::can_name(const model::Module& module) {
  auto [it, added] = usable_.try_emplace(module.id, false);
  if (added) it->second = open(module);
  if (!it->second) ++unnamed_[module.id];
  return it->second;
}

bool ImportNames::is_this_kernel() {
  if (!this_kernel_) this_kernel_ = place_ && lies_at(*place_);
  return *this_kernel_;
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
