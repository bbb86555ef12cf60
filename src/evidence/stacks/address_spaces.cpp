#include "evidence/stacks/address_spaces.h"

#include "model/code/anonymous_module.h"
#include "os/process/module_file.h"

namespace assay::evidence {
namespace {

using model::ModuleKind;

std::string to_hex(std::span<const uint8_t> bytes) {
  std::string hex;
  for (uint8_t byte : bytes) hex += fmt::format("{:02x}", byte);
  return hex;
}

// What is mapped there, by the name that the kernel gives it. Anonymous is executable memory that
// is no file: JIT code, trampolines, [heap], shared anonymous memory.
ModuleKind kind_of(const std::string& path) {
  if (path == "[vdso]") return ModuleKind::vdso;
  bool is_anonymous = path.empty() || path == "//anon" || path.starts_with("/dev/zero") ||
                      path.starts_with("/memfd:") || path.starts_with("/SYSV") ||
                      path.starts_with("[");
  return is_anonymous ? ModuleKind::anonymous : ModuleKind::elf;
}

}  // namespace

AddressSpaces::AddressSpaces(const os::ProcFs& proc, Announce announce)
    : proc_(proc), announce_(std::move(announce)) {
  bool is_new = false;
  kernel_ = intern(ModuleKind::kernel, "[kernel]", "", is_new);
  announce_(0, {}, modules_[kernel_], true);
  marker_ = intern(ModuleKind::marker, "[assay]", "", is_new);
  announce_(0, {}, modules_[marker_], true);
}

model::ModuleId AddressSpaces::intern(ModuleKind kind, const std::string& path,
                                      const std::string& build_id, bool& is_new) {
  size_t before = modules_.all().size();
  model::ModuleId id = modules_.intern(kind, path, build_id);
  is_new = modules_.all().size() > before;
  return id;
}

model::ModuleId AddressSpaces::unknown_memory(pid_t pid) {
  bool is_new = false;
  model::ModuleId id = intern(ModuleKind::anonymous, model::anonymous_module_path(pid), "", is_new);
  if (is_new) announce_(pid, {}, modules_[id], true);
  return id;
}

void AddressSpaces::load(pid_t pid) {
  auto maps = proc_.maps(pid);
  if (!maps) return;
  for (const os::MapsEntry& entry : *maps) {
    if (!entry.executable) continue;
    std::string build_id;
    if (kind_of(entry.path) == ModuleKind::elf) {
      std::string key =
          fmt::format("{}:{}:{} {}", entry.dev_major, entry.dev_minor, entry.inode, entry.path);
      build_id = build_id_of(pid, entry.start, entry.end, entry.path, key);
    }
    add(pid, entry.start, entry.end, entry.file_offset, entry.path, build_id);
  }
}

std::string AddressSpaces::build_id_of(pid_t pid, uint64_t start, uint64_t end,
                                       const std::string& path, const std::string& file_key) {
  auto [it, added] = build_ids_.try_emplace(file_key);
  if (added) {
    auto file = os::open_module_file(pid, start, end, path, "");
    if (file) it->second = file->build_id;
  }
  return it->second;
}

void AddressSpaces::mapped(pid_t pid, const capture::MmapRecord& record) {
  if (!record.executable || record.length == 0) return;
  std::string path(record.path);
  std::string build_id = to_hex(record.build_id);
  uint64_t end = record.start + record.length;
  if (build_id.empty() && kind_of(path) == ModuleKind::elf) {
    build_id = build_id_of(pid, record.start, end, path, "record " + path);
  }
  add(pid, record.start, end, record.file_offset, path, build_id);
}

void AddressSpaces::add(pid_t pid, uint64_t start, uint64_t end, uint64_t offset,
                        const std::string& path, const std::string& build_id) {
  model::Mapping mapping{start, end, offset, {}};
  bool is_new = false;
  ModuleKind kind = kind_of(path);
  if (kind == ModuleKind::vdso) {
    mapping.file_offset = 0;
    mapping.module = intern(ModuleKind::vdso, path, os::vdso_image().build_id, is_new);
  } else if (kind == ModuleKind::anonymous) {
    mapping.file_offset = start;  // addresses of such modules are absolute
    mapping.module = intern(ModuleKind::anonymous, model::anonymous_module_path(pid), "", is_new);
  } else {
    mapping.module = intern(ModuleKind::elf, path, build_id, is_new);
  }
  spaces_[pid].space.map(mapping);
  announce_(pid, mapping, modules_[mapping.module], is_new);
}

void AddressSpaces::forked(pid_t parent, pid_t child) {
  if (parent == child) return;
  auto it = spaces_.find(parent);
  if (it == spaces_.end()) return;
  Space copy = it->second;
  for (const auto& [start, mapping] : copy.space.all()) {
    if (modules_[mapping.module].kind == ModuleKind::anonymous) continue;
    announce_(child, mapping, modules_[mapping.module], false);
  }
  spaces_[child] = std::move(copy);
}

void AddressSpaces::executed(pid_t pid) {
  spaces_[pid].space.clear();
}

void AddressSpaces::exited(pid_t pid) {
  spaces_.erase(pid);
}

const model::Mapping* AddressSpaces::find(pid_t pid, uint64_t address, TimeNs now) {
  Space& space = spaces_[pid];
  const model::Mapping* mapping = space.space.find(address);
  if (mapping != nullptr || now - space.reloaded_at < kNsPerSecond) return mapping;
  // Memory made executable by mprotect() has no MMAP record: a JIT's, usually.
  space.reloaded_at = now;
  load(pid);
  return spaces_[pid].space.find(address);
}

}  // namespace assay::evidence
