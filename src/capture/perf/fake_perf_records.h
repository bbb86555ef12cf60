// Perf records as the kernel lays them out, built field by field for tests and fuzz seeds.
//
// Independent of record.cpp on purpose: written from perf_event_open(2), so that a misreading there
// is found here. Every function returns a whole record whose bytes are 8-byte aligned.
#pragma once

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <asm/perf_regs.h>
#include <linux/perf_event.h>

#include "capture/perf/record.h"

namespace assay::capture::fake {

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& to, const T& value) {
  auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

inline void pad_to_8(Bytes& to) {
  while (to.size() % 8 != 0) to.push_back(std::byte{0});
}

inline void set_size(Bytes& record, size_t size) {
  auto value = static_cast<uint16_t>(size);
  std::memcpy(record.data() + offsetof(perf_event_header, size), &value, sizeof value);
}

// Header first, size fixed up by finish().
inline Bytes begin(uint32_t type, uint16_t misc) {
  Bytes record;
  put(record, perf_event_header{type, misc, 0});
  return record;
}

inline Bytes finish(Bytes record) {
  pad_to_8(record);
  set_size(record, record.size());
  return record;
}

// sample_id_all: what follows every record that is not a sample.
inline Bytes finish_with_trailer(Bytes record, const RecordHead& head, uint64_t id = 1) {
  pad_to_8(record);
  put(record, head.pid);
  put(record, head.tid);
  put(record, head.time);
  put(record, head.cpu);
  put(record, uint32_t{0});
  put(record, id);
  return finish(std::move(record));
}

inline Bytes begin_sample(uint64_t id, const RecordHead& head, uint16_t misc) {
  Bytes record = begin(PERF_RECORD_SAMPLE, misc);
  put(record, id);
  put(record, head.pid);
  put(record, head.tid);
  put(record, head.time);
  put(record, head.cpu);
  put(record, uint32_t{0});
  return record;
}

struct StackSample {
  uint64_t id = 1;
  RecordHead head;
  uint16_t misc = PERF_RECORD_MISC_USER;
  uint64_t period = 1;
  std::vector<uint64_t> chain{};  // with the kernel's context markers
  Bytes raw{};                    // tracepoint payload
  uint64_t abi = PERF_SAMPLE_REGS_ABI_64;
  std::array<uint64_t, 64> registers{};  // by PERF_REG_X86_*
  Bytes copy{};                          // 0 bytes: no copy at all
  uint64_t valid_bytes = UINT64_MAX;     // of the copy; UINT64_MAX: all
};

// The kernel pads the payload so that size word and payload together fill whole words.
inline void put_raw(Bytes& record, std::span<const std::byte> raw) {
  Bytes padded(raw.begin(), raw.end());
  while ((padded.size() + sizeof(uint32_t)) % 8 != 0) padded.push_back(std::byte{0});
  put(record, static_cast<uint32_t>(padded.size()));
  record.insert(record.end(), padded.begin(), padded.end());
}

inline Bytes stack_sample(const StackSample& sample) {
  Bytes record = begin_sample(sample.id, sample.head, sample.misc);
  put(record, sample.period);
  put(record, static_cast<uint64_t>(sample.chain.size()));
  for (uint64_t address : sample.chain) put(record, address);
  put_raw(record, sample.raw);
  put(record, sample.abi);
  if (sample.abi != PERF_SAMPLE_REGS_ABI_NONE) {
    for (int bit = 0; bit < 64; ++bit) {
      if (user_register_mask() >> bit & 1) put(record, sample.registers[bit]);
    }
  }
  put(record, static_cast<uint64_t>(sample.copy.size()));
  if (!sample.copy.empty()) {
    record.insert(record.end(), sample.copy.begin(), sample.copy.end());
    put(record, std::min<uint64_t>(sample.valid_bytes, sample.copy.size()));
  }
  return finish(std::move(record));
}

inline Bytes stack_pattern(size_t size) {
  Bytes copy(size);
  for (size_t i = 0; i < size; ++i) copy[i] = static_cast<std::byte>(i * 7 + 1);
  return copy;
}

// A typical sample: kernel and user frames, registers, a copy of `copied` bytes of which `valid`
// hold.
inline Bytes usual_sample(uint64_t id, const RecordHead& head, size_t copied, size_t valid) {
  StackSample sample{.id = id, .head = head};
  sample.chain = {PERF_CONTEXT_KERNEL, 0xffffffff81000010, PERF_CONTEXT_USER, 0x401000, 0x402000};
  for (size_t i = 0; i < sample.registers.size(); ++i) sample.registers[i] = 0x1000 + i;
  sample.copy = stack_pattern(copied);
  sample.valid_bytes = valid;
  return stack_sample(sample);
}

inline Bytes waking_sample(uint64_t id, const RecordHead& head, std::span<const std::byte> raw) {
  Bytes record = begin_sample(id, head, PERF_RECORD_MISC_KERNEL);
  put_raw(record, raw);
  return finish(std::move(record));
}

inline Bytes switch_record(const RecordHead& head, bool out, bool preempted = false) {
  uint16_t misc = out ? PERF_RECORD_MISC_SWITCH_OUT : 0;
  if (preempted) misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
  return finish_with_trailer(begin(PERF_RECORD_SWITCH, misc), head);
}

inline Bytes cpu_wide_switch_record(const RecordHead& head, bool out, pid_t other_tid) {
  Bytes record = begin(PERF_RECORD_SWITCH_CPU_WIDE, out ? PERF_RECORD_MISC_SWITCH_OUT : 0);
  put(record, other_tid);
  put(record, other_tid);
  return finish_with_trailer(std::move(record), head);
}

inline void put_text(Bytes& to, std::string_view text) {
  for (char c : text) to.push_back(static_cast<std::byte>(c));
  to.push_back(std::byte{0});
}

struct Mapping {
  uint64_t start = 0, length = 0, file_offset = 0;
  uint32_t protection = 5;        // PROT_READ | PROT_EXEC
  std::vector<uint8_t> build_id;  // empty: device and inode instead
  std::string_view path;
};

inline Bytes mmap2_record(const RecordHead& head, const Mapping& mapping) {
  Bytes record =
      begin(PERF_RECORD_MMAP2, mapping.build_id.empty() ? 0 : PERF_RECORD_MISC_MMAP_BUILD_ID);
  put(record, head.pid);
  put(record, head.tid);
  put(record, mapping.start);
  put(record, mapping.length);
  put(record, mapping.file_offset);
  std::array<uint8_t, 24> identity{8, 1, 0, 0};
  if (!mapping.build_id.empty()) {
    identity = {};
    identity[0] = static_cast<uint8_t>(mapping.build_id.size());
    std::memcpy(identity.data() + 4, mapping.build_id.data(),
                std::min<size_t>(20, mapping.build_id.size()));
  }
  put(record, identity);
  put(record, mapping.protection);
  put(record, uint32_t{2});  // MAP_PRIVATE
  put_text(record, mapping.path);
  return finish_with_trailer(std::move(record), head);
}

// `head` names the thread that wrote the name; `pid` and `tid` the thread that is named.
inline Bytes comm_record(const RecordHead& head, pid_t pid, pid_t tid, std::string_view name,
                         bool exec) {
  Bytes record = begin(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
  put(record, pid);
  put(record, tid);
  put_text(record, name);
  return finish_with_trailer(std::move(record), head);
}

inline Bytes task_record(uint32_t type, const RecordHead& head, const ForkRecord& task) {
  Bytes record = begin(type, 0);
  put(record, task.pid);
  put(record, task.parent_pid);
  put(record, task.tid);
  put(record, task.parent_tid);
  put(record, head.time);
  return finish_with_trailer(std::move(record), head);
}

inline Bytes fork_record(const RecordHead& head, const ForkRecord& task) {
  return task_record(PERF_RECORD_FORK, head, task);
}

inline Bytes exit_record(const RecordHead& head, const ForkRecord& task) {
  return task_record(PERF_RECORD_EXIT, head, task);
}

inline Bytes lost_record(const RecordHead& head, uint64_t count, uint64_t id = 1) {
  Bytes record = begin(PERF_RECORD_LOST, 0);
  put(record, id);
  put(record, count);
  return finish_with_trailer(std::move(record), head);
}

inline Bytes lost_samples_record(const RecordHead& head, uint64_t count) {
  Bytes record = begin(PERF_RECORD_LOST_SAMPLES, 0);
  put(record, count);
  return finish_with_trailer(std::move(record), head);
}

inline Bytes throttle_record(const RecordHead& head, bool begins, uint64_t id = 1) {
  Bytes record = begin(begins ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE, 0);
  put(record, head.time);
  put(record, id);
  put(record, uint64_t{0});
  return finish_with_trailer(std::move(record), head);
}

}  // namespace assay::capture::fake
