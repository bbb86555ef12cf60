#include "reader/remote_symbolizer.h"

#include <mutex>
#include <thread>

#include "reader/protocol.h"
#include "reader/readers.h"
#include "symbol/name_source.h"

namespace assay::reader {
namespace {

constexpr size_t kMostAddresses = 20'000;  // of one question

bool is_read_here(model::ModuleKind kind) {
  return kind == model::ModuleKind::kernel || kind == model::ModuleKind::vdso ||
         kind == model::ModuleKind::marker;
}

std::vector<model::Location> fallback(const model::Module& module, uint64_t address) {
  model::Location out;
  out.function = symbol::offset_name(module.path, address);
  return {out};
}

WireWriter begin(Kind kind, model::ModuleId module) {
  WireWriter out;
  out.u8(static_cast<uint8_t>(kind)).u32(module.value);
  return out;
}

}  // namespace

RemoteSymbolizer::RemoteSymbolizer(const Readers& readers, const symbol::Options& options)
    : readers_(readers),
      files_(options.files ? options.files : symbol::direct_file_access()),
      here_(symbol::Symbolizer::create(options)) {}

void RemoteSymbolizer::add_module(pid_t pid, const model::Mapping& mapping,
                                  const model::Module& module) {
  if (is_read_here(module.kind)) return here_->add_module(pid, mapping, module);
  if (find(module.id) != nullptr) return;
  auto entry = std::make_unique<Entry>();
  entry->module = module;
  entry->pid = pid;
  entry->process = readers_.of(module.id.value);
  if (module.kind == model::ModuleKind::elf) {
    auto file = files_->open_module(pid, mapping, module);
    if (file) {
      entry->file = std::move(file->fd);
      entry->opened_path = file->opened_path;
      entry->build_id = file->build_id;
    } else {
      entry->problem = file.error().what;
    }
  }
  std::unique_lock lock(mutex_);
  entries_.try_emplace(module.id, std::move(entry));
}

RemoteSymbolizer::Entry* RemoteSymbolizer::find(model::ModuleId module) const {
  std::shared_lock lock(mutex_);
  auto it = entries_.find(module);
  return it == entries_.end() ? nullptr : it->second.get();
}

Result<void> RemoteSymbolizer::give(Entry& entry) const {
  WireWriter out = begin(Kind::add_module, entry.module.id);
  out.u8(static_cast<uint8_t>(entry.module.kind))
      .text(entry.module.path)
      .text(entry.module.build_id);
  out.u32(static_cast<uint32_t>(entry.pid))
      .text(entry.opened_path)
      .text(entry.build_id)
      .text(entry.problem);
  std::vector<int> descriptors;
  if (entry.file.valid()) descriptors.push_back(entry.file.get());
  auto given = entry.process->ask(out.take(), descriptors, entry.pid);
  if (!given) return std::unexpected(given.error());
  entry.known_to = entry.process->generation();
  return {};
}

// A module over which its reader failed is not tried again: the file would do it again.
Result<std::string> RemoteSymbolizer::ask(Entry& entry, const std::string& question) const {
  std::lock_guard lock(entry.process->mutex());
  if (!entry.failure.empty()) return fail("{}", entry.failure);
  Result<void> given;
  if (entry.known_to == 0 || entry.known_to != entry.process->generation()) given = give(entry);
  Result<std::string> answer =
      given ? entry.process->ask(question, {}, entry.pid) : std::unexpected(given.error());
  if (!answer) entry.failure = answer.error().what;
  return answer;
}

std::vector<std::vector<model::Location>> RemoteSymbolizer::resolve_many(
    Entry& entry, const std::vector<uint64_t>& addresses) const {
  std::vector<std::vector<model::Location>> out;
  out.reserve(addresses.size());
  while (out.size() < addresses.size()) {
    size_t count = std::min(kMostAddresses, addresses.size() - out.size());
    WireWriter question = begin(Kind::resolve, entry.module.id);
    question.u32(static_cast<uint32_t>(count));
    for (size_t i = 0; i < count; ++i) question.u64(addresses[out.size() + i]);
    auto answer = ask(entry, question.take());
    WireReader in(answer ? std::string_view(*answer) : std::string_view());
    size_t told = answer ? in.count(1) : 0;
    for (size_t i = 0; i < count; ++i) {
      std::vector<model::Location> names =
          i < told ? read_locations(in) : std::vector<model::Location>{};
      if (names.empty()) names = fallback(entry.module, addresses[out.size()]);
      out.push_back(std::move(names));
    }
  }
  return out;
}

std::vector<model::Location> RemoteSymbolizer::resolve(model::ModuleId module, uint64_t address) {
  Entry* entry = find(module);
  if (entry == nullptr) return here_->resolve(module, address);
  return std::move(resolve_many(*entry, {address}).front());
}

std::vector<std::vector<model::Location>> RemoteSymbolizer::resolve_all(
    std::span<const model::Frame> frames) {
  std::vector<std::vector<model::Location>> out(frames.size());
  std::map<model::ModuleId, std::vector<uint32_t>> by_module;
  std::vector<uint32_t> local;
  for (uint32_t i = 0; i < frames.size(); ++i) {
    if (find(frames[i].module) != nullptr)
      by_module[frames[i].module].push_back(i);
    else
      local.push_back(i);
  }
  // One thread for each reader: its modules one after the other.
  auto work = [&](size_t reader) {
    for (auto& [id, places] : by_module) {
      if (id.value % readers_.count() != reader) continue;
      std::sort(places.begin(), places.end(),
                [&](uint32_t a, uint32_t b) { return frames[a].address < frames[b].address; });
      std::vector<uint64_t> addresses;
      for (uint32_t at : places) addresses.push_back(frames[at].address);
      auto names = resolve_many(*find(id), addresses);
      for (size_t i = 0; i < places.size(); ++i) out[places[i]] = std::move(names[i]);
    }
  };
  std::vector<std::jthread> threads;
  for (size_t reader = 0; reader < readers_.count() && !by_module.empty(); ++reader)
    threads.emplace_back(work, reader);
  for (uint32_t at : local) out[at] = here_->resolve(frames[at].module, frames[at].address);
  return threads.clear(), out;
}

std::string RemoteSymbolizer::resolve_data(model::ModuleId module, uint64_t address) {
  Entry* entry = find(module);
  if (entry == nullptr) return here_->resolve_data(module, address);
  auto answer = ask(*entry, begin(Kind::resolve_data, module).u64(address).take());
  return answer ? WireReader(*answer).text() : "";
}

symbol::ModuleStatus RemoteSymbolizer::module_status(model::ModuleId module) const {
  Entry* entry = find(module);
  if (entry == nullptr) return here_->module_status(module);
  auto answer = ask(*entry, begin(Kind::status, module).take());
  symbol::ModuleStatus status;
  if (answer) {
    WireReader in(*answer);
    status = read_status(in);
  } else {
    status.opened = entry->file.valid();
    status.problem = answer.error().what;
  }
  return status;
}

}  // namespace assay::reader
