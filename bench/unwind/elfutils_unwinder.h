// ElfutilsUnwinder: the same raw stacks walked by elfutils (dwfl_getthread_frames over the copy),
// as the truth to compare with and the speed to beat. One per program image.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "model/address_space.h"
#include "model/module.h"
#include "os/process/module_file.h"
#include "unwind/unwinder.h"

namespace assay::bench {

class ElfutilsUnwinder {
 public:
  struct Frame {
    uint64_t pc = 0;
    bool is_activation = false;
  };

  ElfutilsUnwinder(const model::AddressSpace& space, const model::ModuleTable& modules) {
    static const Dwfl_Callbacks callbacks = {find_elf, no_debug_file, nullptr, nullptr};
    dwfl_ = dwfl_begin(&callbacks);
    dwfl_report_begin(dwfl_);
    std::map<uint32_t, bool> reported;
    for (const auto& [start, mapping] : space.all()) {
      const model::Module& module = modules[mapping.module];
      if (module.kind == model::ModuleKind::vdso) report_vdso(mapping);
      if (module.kind != model::ModuleKind::elf || reported[mapping.module.value]) continue;
      reported[mapping.module.value] = true;
      report(mapping, module);
    }
    dwfl_report_end(dwfl_, nullptr, nullptr);
  }
  ~ElfutilsUnwinder() { dwfl_end(dwfl_); }
  ElfutilsUnwinder(const ElfutilsUnwinder&) = delete;

  const std::vector<Frame>& unwind(const unwind::RawStack& raw) {
    static const Dwfl_Thread_Callbacks callbacks = {next_thread,   nullptr, read_memory,
                                                    set_registers, nullptr, nullptr};
    raw_ = &raw;
    frames_.clear();
    if (!attached_) attached_ = dwfl_attach_state(dwfl_, nullptr, 1, &callbacks, this);
    if (attached_) dwfl_getthread_frames(dwfl_, 1, on_frame, this);
    return frames_;
  }

 private:
  // From our own memory, as our table of it is; elfutils wants a file.
  void report_vdso(const model::Mapping& mapping) {
    const std::string& image = os::vdso_image().bytes;
    int fd = ::memfd_create("vdso", MFD_CLOEXEC);
    if (fd < 0) return;
    bool written = ::write(fd, image.data(), image.size()) == static_cast<ssize_t>(image.size());
    if (!written || !dwfl_report_elf(dwfl_, "[vdso]", "[vdso]", fd, mapping.start, false))
      ::close(fd);
  }

  void report(const model::Mapping& mapping, const model::Module& module) {
    int fd = ::open(module.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    auto image = elf::ElfFile::open(fd);
    if (!image) return static_cast<void>(::close(fd));
    std::optional<uint64_t> first;
    for (const auto& s : (*image)->segments()) {
      if (s.type != PT_LOAD || s.file_size == 0) continue;
      if (!first) first = s.address & ~uint64_t{4095};
      uint64_t page = s.offset & ~uint64_t{4095};
      if (!(s.flags & PF_X) || mapping.file_offset < page ||
          mapping.file_offset >= s.offset + s.file_size) {
        continue;
      }
      uint64_t bias = mapping.start - mapping.file_offset + s.offset - s.address;
      if (!dwfl_report_elf(dwfl_, module.path.c_str(), module.path.c_str(), fd, bias + *first,
                           false)) {
        ::close(fd);
      }
      return;
    }
    ::close(fd);
  }

  static int find_elf(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }
  // .eh_frame alone, as ours: separate debug files would add what we do not read.
  static int no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                           GElf_Word, char**) {
    return -1;
  }
  static pid_t next_thread(Dwfl*, void* arg, void** thread_arg) {
    if (*thread_arg) return 0;
    *thread_arg = arg;
    return 1;
  }
  static bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* arg) {
    auto* self = static_cast<ElfutilsUnwinder*>(arg);
    uint64_t offset = address - self->raw_->registers.sp();
    if (self->raw_->copy.size() < 8 || offset > self->raw_->copy.size() - 8) return false;
    std::memcpy(result, self->raw_->copy.data() + offset, 8);
    return true;
  }
  static bool set_registers(Dwfl_Thread* thread, void* arg) {
    auto* self = static_cast<ElfutilsUnwinder*>(arg);
    return dwfl_thread_state_registers(thread, 0, model::kRegCount,
                                       self->raw_->registers.value.data());
  }
  static int on_frame(Dwfl_Frame* state, void* arg) {
    auto* self = static_cast<ElfutilsUnwinder*>(arg);
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(state, &pc, &is_activation)) return DWARF_CB_ABORT;
    self->frames_.push_back({pc, is_activation});
    return self->frames_.size() < 2048 ? DWARF_CB_OK : DWARF_CB_ABORT;
  }

  Dwfl* dwfl_ = nullptr;
  bool attached_ = false;
  const unwind::RawStack* raw_ = nullptr;
  std::vector<Frame> frames_;
};

}  // namespace assay::bench
