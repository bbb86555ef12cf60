// ProgramsFixture: a target with one module and one stack, and the BPF programs over them in user
// space. For tests only.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "capture/bpf/range_lists.h"
#include "capture/bpf/table_pool.h"
#include "capture/bpf/testing/host_programs.h"

namespace assay::capture::fake {

inline constexpr uint64_t kCode = 0x400000, kStack = 0x7f0000000000, kLeaf = uint64_t{1} << 63;
inline constexpr uint32_t kSp = 0, kFp = 1, kEnd = 2, kPlt = 3, kSignal = 4, kFpMemory = 5,
                          kNone = 6, kFull = 7;

inline uint32_t row(uint32_t type, uint32_t fp_slot, uint32_t cfa) {
  return type << 8 | fp_slot << 11 | cfa << 16;
}

// The program: one function at the beginning of each page of text, with one rule.
enum Function : uint32_t {
  two_words,
  by_frame,
  root,
  plt,
  restorer,
  without_rules,
  full_rule,
  large_frame,
  odd_rule,
  aligned,
  one_word,
  new_thread,
  functions,
};
inline const uint32_t kRules[functions] = {row(kSp, 0, 2),     row(kFp, 1, 2),
                                           row(kEnd, 0, 0),    row(kPlt, 0, 11),
                                           row(kSignal, 0, 0), row(kNone, 0, 0),
                                           row(kFull, 0, 3),   row(kSp, 0, 1200),
                                           row(kNone, 0, 1),   row(kFpMemory, 1, 0xffff),
                                           row(kSp, 0, 1),     row(kEnd, 0, 2)};

// An address inside a function; a return address is one behind its call.
inline uint64_t in(Function function, uint64_t offset = 0x20) {
  return kCode + function * 0x100 + offset;
}

struct Records {
  std::vector<bpf::wait_record> waits;
  std::vector<bpf::sample_record> samples;
  std::map<uint32_t, bpf::stack_record> stacks;
  std::map<uint32_t, std::vector<uint64_t>> pcs;
  std::vector<bpf::raw_record> raws;
  std::vector<bpf::kernel_record> kernels;
};

template <class Record>
Record read_record(const std::byte* at, size_t size) {
  Record record{};
  std::memcpy(&record, at, std::min(size, sizeof record));
  return record;
}

class ProgramsFixture : public ::testing::Test {
 protected:
  static constexpr pid_t kPid = 100;

  ProgramsFixture() : words_(6000) {
    host_reset();
    std::vector<uint32_t> index{0}, rows;
    for (uint32_t rule : kRules) {
      rows.push_back(rule);
      index.push_back(static_cast<uint32_t>(rows.size()));
    }
    auto place = pool_.add(index, rows, 0);
    std::vector<bpf::range> ranges{
        {kCode, kCode + functions * 0x100, ~kCode + 1, place->index_at, place->rows_at}};
    code_ = lists_.set(kPid, ranges, 0);
    for (int task = 0; task < 3; ++task) host_set_task(task, kPid + task, kPid, 0);
    host_set_task(5, 0, 0, 0);  // the idle task, which is none of the target's
    host_watch(kPid, code_);
    for (int task = 0; task < 3; ++task) host_switch(5, task, 0, 0);  // they run when all begins
    host_take_records(words_.data(), words_.size() * 8);
    std::ranges::fill(words_, 0);
    registers().ip = in(two_words);
    registers().sp = kStack;
    registers().orig_ax = static_cast<uint64_t>(-1);
  }

  raw_regs& registers(int task = 0) { return *host_registers(task); }
  void put(size_t word, uint64_t value) { words_.at(word) = value; }
  void map_stack() { host_map(kStack, words_.data(), words_.size() * 8); }

  // A stack of two frames: two_words, called by root.
  void put_short_stack() {
    put(1, in(root));
    map_stack();
  }
  void leave(uint64_t time, unsigned state = 1, bool preempted = false) {
    host_set_time(time);
    host_switch(0, 5, preempted, state);
  }
  void come_back(uint64_t time) {
    host_set_time(time);
    host_switch(5, 0, 0, 0);
  }
  Records take() {
    std::vector<std::byte> bytes(kHostRingBytes);
    bytes.resize(host_take_records(bytes.data(), bytes.size()));
    Records records;
    for (size_t at = 0; at < bytes.size();) {
      auto head = read_record<bpf::head>(bytes.data() + at, sizeof(bpf::head));
      if (head.size == 0) {
        ADD_FAILURE() << "a record without a size";
        break;
      }
      sort_out(bytes.data() + at, head, records);
      at += head.size;
    }
    return records;
  }
  void sort_out(const std::byte* at, const bpf::head& head, Records& out) {
    if (head.type == bpf::kRecordWait)
      out.waits.push_back(read_record<bpf::wait_record>(at, head.size));
    if (head.type == bpf::kRecordSample)
      out.samples.push_back(read_record<bpf::sample_record>(at, head.size));
    if (head.type == bpf::kRecordRaw)
      out.raws.push_back(read_record<bpf::raw_record>(at, head.size));
    if (head.type == bpf::kRecordKernel)
      out.kernels.push_back(read_record<bpf::kernel_record>(at, head.size));
    if (head.type != bpf::kRecordStack) return;
    auto stack = read_record<bpf::stack_record>(at, head.size);
    out.pcs[stack.id].assign(stack.pcs, stack.pcs + stack.count);
    out.stacks[stack.id] = stack;
  }
  // The stack of a sample taken now; of a walk that the reader has to do: none.
  std::vector<uint64_t> walk() {
    host_set_time(1000);
    host_sample(0);
    last_ = take();
    return last_.stacks.empty() ? std::vector<uint64_t>{} : last_.pcs.begin()->second;
  }
  uint8_t end() const { return last_.stacks.begin()->second.end; }
  uint8_t raw_end() const { return last_.raws.empty() ? 0 : last_.raws[0].end; }

  std::vector<uint64_t> words_;
  TablePool pool_{[](uint32_t number) { return host_chunk(number); }};
  RangeLists lists_{std::span(host_ranges_of(), 1000)};
  uint64_t code_ = 0;
  Records last_;

 private:
  static bpf::range* host_ranges_of() {
    host_reset();
    return host_ranges();
  }
};

}  // namespace assay::capture::fake
