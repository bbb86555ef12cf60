#include "capture/perf/record.h"

#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/perf/fake_perf_records.h"

namespace assay::capture {
namespace {

using fake::Bytes;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

constexpr uint64_t kOnCpuId = 11, kOffCpuId = 12, kWakingId = 13, kSideId = 14;
const RecordHead kHead{.time = 123'456'789'000, .pid = 4000, .tid = 4001, .cpu = 3};

class FourEvents final : public EventIds {
 public:
  EventKind kind_of(uint64_t id) const override {
    static const std::map<uint64_t, EventKind> kinds{{kOnCpuId, EventKind::on_cpu},
                                                     {kOffCpuId, EventKind::off_cpu},
                                                     {kWakingId, EventKind::waking},
                                                     {kSideId, EventKind::side_band}};
    auto it = kinds.find(id);
    return it == kinds.end() ? EventKind::unknown : it->second;
  }
};
const FourEvents kIds;

template <class Body>
Body parse_as(const Bytes& bytes, RecordHead* head = nullptr) {
  auto record = parse_record(bytes, kIds);
  if (!record || !std::holds_alternative<Body>(record->body)) {
    ADD_FAILURE() << "not parsed as the kind that was written";
    return {};
  }
  if (head != nullptr) *head = record->head;
  return std::get<Body>(record->body);
}

void expect_head(const RecordHead& head, const RecordHead& expected = kHead) {
  EXPECT_EQ(head.time, expected.time);
  EXPECT_EQ(head.pid, expected.pid);
  EXPECT_EQ(head.tid, expected.tid);
  EXPECT_EQ(head.cpu, expected.cpu);
}

fake::StackSample sample_with_copy(size_t copied, uint64_t valid = UINT64_MAX) {
  fake::StackSample sample{.id = kOffCpuId, .head = kHead};
  sample.period = 10'101'010;
  sample.chain = {PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020, PERF_CONTEXT_USER,
                  0x401000};
  for (size_t i = 0; i < sample.registers.size(); ++i) sample.registers[i] = 0xabc000 + i;
  sample.copy = fake::stack_pattern(copied);
  sample.valid_bytes = valid;
  return sample;
}

// One of each kind, and the odd shapes among samples.
std::vector<Bytes> one_of_each() {
  fake::StackSample kernel_thread{.id = kOnCpuId, .head = kHead, .misc = PERF_RECORD_MISC_KERNEL};
  kernel_thread.chain = {PERF_CONTEXT_KERNEL, 0xffffffff81000010};
  kernel_thread.abi = PERF_SAMPLE_REGS_ABI_NONE;
  ForkRecord task{.pid = 1, .parent_pid = 2, .tid = 3, .parent_tid = 4};
  return {
      fake::stack_sample(sample_with_copy(64)),
      fake::stack_sample(sample_with_copy(64, 24)),
      fake::stack_sample(sample_with_copy(0)),
      fake::stack_sample(kernel_thread),
      fake::waking_sample(kWakingId, kHead, fake::stack_pattern(36)),
      fake::waking_sample(kSideId, kHead, {}),
      fake::waking_sample(99, kHead, fake::stack_pattern(20)),
      fake::switch_record(kHead, true),
      fake::cpu_wide_switch_record(kHead, false, 77),
      fake::mmap2_record(
          kHead, {0x7f0000000000, 0x2000, 0x1000, 5, std::vector<uint8_t>(20, 7), "/lib/x.so"}),
      fake::mmap2_record(kHead, {0x7f0000000000, 0x2000, 0x1000, 1, {}, "//anon"}),
      fake::comm_record(kHead, 4000, 4001, "server", true),
      fake::fork_record(kHead, task),
      fake::exit_record(kHead, task),
      fake::lost_record(kHead, 5),
      fake::lost_samples_record(kHead, 6),
      fake::throttle_record(kHead, true),
      fake::throttle_record(kHead, false),
  };
}

// Reads every byte that a parsed record points at, so that a sanitizer sees a span that is too
// long.
uint64_t touch(const Record& record) {
  uint64_t sum = static_cast<uint64_t>(record.head.time);
  auto add = [&sum](const auto& range) {
    for (auto value : range) sum += static_cast<uint64_t>(value);
  };
  if (auto* sample = std::get_if<SampleRecord>(&record.body)) {
    add(sample->kernel_chain);
    add(sample->user_chain);
    add(sample->stack);
    add(sample->raw);
    add(sample->registers.value);
  } else if (auto* mapping = std::get_if<MmapRecord>(&record.body)) {
    add(mapping->build_id);
    add(mapping->path);
  } else if (auto* comm = std::get_if<CommRecord>(&record.body)) {
    add(comm->name);
  }
  return sum;
}

// Everything that reads foreign bytes, on a copy of exactly this size on the heap.
bool parse_all(std::span<const std::byte> bytes) {
  Bytes exact(bytes.begin(), bytes.end());
  auto time = record_time(exact);
  auto cut = find_stack(exact);
  if (cut) {
    EXPECT_LE(cut->prefix_bytes + 8 + cut->copy_bytes, exact.size());
    EXPECT_EQ(cut->copy_bytes % 8, 0u);
  }
  auto record = parse_record(exact, kIds);
  if (!record) return false;
  EXPECT_TRUE(time.has_value()) << "a record that parses has a time";
  EXPECT_EQ(time.value_or(0), record->head.time);
  static volatile uint64_t sink;  // keeps the reads
  sink = sink + touch(*record);
  return true;
}

// As the reader keeps a sample: the prefix, then the valid part of the copy.
Bytes trimmed(const Bytes& record, const StackCut& cut, size_t keep) {
  Bytes out(record.begin(), record.begin() + static_cast<ptrdiff_t>(cut.prefix_bytes));
  fake::put(out, uint64_t{keep});
  if (keep > 0) {
    auto copy = record.begin() + static_cast<ptrdiff_t>(cut.prefix_bytes + 8);
    out.insert(out.end(), copy, copy + static_cast<ptrdiff_t>(keep));
    fake::put(out, uint64_t{keep});
  }
  return fake::finish(std::move(out));
}

TEST(Record, StackSampleRoundTrips) {
  fake::StackSample written = sample_with_copy(64, 24);
  Bytes bytes = fake::stack_sample(written);
  RecordHead head;
  auto sample = parse_as<SampleRecord>(bytes, &head);
  expect_head(head);
  EXPECT_EQ(record_time(bytes), kHead.time);
  EXPECT_EQ(sample.kind, EventKind::off_cpu);
  EXPECT_EQ(sample.period, 10'101'010u);
  EXPECT_TRUE(sample.user_mode);
  EXPECT_THAT(sample.kernel_chain, ElementsAre(0xffffffff81000010, 0xffffffff81000020));
  EXPECT_THAT(sample.user_chain, ElementsAre(0x401000));
  Bytes expected = fake::stack_pattern(24);
  EXPECT_THAT(sample.stack, ElementsAreArray(expected));
  EXPECT_EQ(sample.raw.size(), 4u) << "an event without payload has four bytes of nothing";
}

TEST(Record, ASwitchCarriesItsPayload) {
  fake::StackSample written = sample_with_copy(64, 24);
  written.raw = fake::stack_pattern(60);
  Bytes bytes = fake::stack_sample(written);
  auto sample = parse_as<SampleRecord>(bytes);
  EXPECT_THAT(sample.raw, ElementsAreArray(written.raw));
  EXPECT_EQ(sample.stack.size(), 24u);
  auto cut = find_stack(bytes);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->raw_bytes, 64u);
}

TEST(Record, KernelModeAndNoUserRegisters) {
  fake::StackSample written{.id = kOnCpuId, .head = kHead, .misc = PERF_RECORD_MISC_KERNEL};
  written.abi = PERF_SAMPLE_REGS_ABI_NONE;
  auto bytes = fake::stack_sample(written);
  auto sample = parse_as<SampleRecord>(bytes);
  EXPECT_EQ(sample.kind, EventKind::on_cpu);
  EXPECT_FALSE(sample.user_mode);
  EXPECT_EQ(sample.registers.known, 0u);
  EXPECT_THAT(sample.stack, IsEmpty());
  EXPECT_THAT(sample.kernel_chain, IsEmpty());
  EXPECT_THAT(sample.user_chain, IsEmpty());
}

TEST(Record, RegistersOfA32BitProcessAreNotTaken) {
  auto written = sample_with_copy(16);
  written.abi = PERF_SAMPLE_REGS_ABI_32;
  auto bytes = fake::stack_sample(written);
  auto sample = parse_as<SampleRecord>(bytes);
  EXPECT_EQ(sample.registers.known, 0u);
  EXPECT_EQ(sample.stack.size(), 16u) << "what follows the registers is still found";
}

TEST(Record, RegistersLandAtTheirDwarfNumbers) {
  // System V psABI for x86-64, figure 3.36, against the kernel's asm/perf_regs.h.
  const std::map<int, int> perf_by_dwarf{
      {0, PERF_REG_X86_AX},   {1, PERF_REG_X86_DX},   {2, PERF_REG_X86_CX},
      {3, PERF_REG_X86_BX},   {4, PERF_REG_X86_SI},   {5, PERF_REG_X86_DI},
      {6, PERF_REG_X86_BP},   {7, PERF_REG_X86_SP},   {8, PERF_REG_X86_R8},
      {9, PERF_REG_X86_R9},   {10, PERF_REG_X86_R10}, {11, PERF_REG_X86_R11},
      {12, PERF_REG_X86_R12}, {13, PERF_REG_X86_R13}, {14, PERF_REG_X86_R14},
      {15, PERF_REG_X86_R15}, {16, PERF_REG_X86_IP}};
  uint64_t mask = 0;
  for (auto [dwarf, perf] : perf_by_dwarf) mask |= uint64_t{1} << perf;
  EXPECT_EQ(user_register_mask(), mask);
  auto written = sample_with_copy(8);
  auto bytes = fake::stack_sample(written);
  auto sample = parse_as<SampleRecord>(bytes);
  EXPECT_EQ(sample.registers.known, (1u << model::kRegCount) - 1);
  for (auto [dwarf, perf] : perf_by_dwarf) {
    EXPECT_EQ(sample.registers.value[dwarf], written.registers[perf]) << "DWARF register " << dwarf;
  }
  EXPECT_EQ(sample.registers.ip(), written.registers[PERF_REG_X86_IP]);
  EXPECT_EQ(sample.registers.sp(), written.registers[PERF_REG_X86_SP]);
}

TEST(Record, ContextMarkersSplitTheChain) {
  auto split = [](std::vector<uint64_t> chain) {
    fake::StackSample written{.id = kOnCpuId, .head = kHead};
    written.chain = std::move(chain);
    auto bytes = fake::stack_sample(written);
    auto sample = parse_as<SampleRecord>(bytes);
    return std::pair(std::vector(sample.kernel_chain.begin(), sample.kernel_chain.end()),
                     std::vector(sample.user_chain.begin(), sample.user_chain.end()));
  };
  using Words = std::vector<uint64_t>;
  constexpr uint64_t kernel = PERF_CONTEXT_KERNEL, user = PERF_CONTEXT_USER;
  EXPECT_EQ(split({kernel, 1, 2, user, 3, 4}), std::pair(Words({1, 2}), Words({3, 4})));
  EXPECT_EQ(split({user, 3}), std::pair(Words(), Words({3})));
  EXPECT_EQ(split({kernel, 1}), std::pair(Words({1}), Words()));
  EXPECT_EQ(split({kernel, user}), std::pair(Words(), Words()));
  EXPECT_EQ(split({}), std::pair(Words(), Words()));
  EXPECT_EQ(split({9, kernel, 1}), std::pair(Words({1}), Words())) << "addresses without a context";
  EXPECT_EQ(split({kernel, 1, PERF_CONTEXT_GUEST, 8, user, 3}), std::pair(Words({1}), Words({3})));
  EXPECT_EQ(split({kernel, 1, static_cast<uint64_t>(PERF_CONTEXT_MAX), 8}),
            std::pair(Words({1}), Words()));
}

TEST(Record, WakingSampleKeepsItsPayload) {
  Bytes raw = fake::stack_pattern(36);
  Bytes bytes = fake::waking_sample(kWakingId, kHead, raw);
  RecordHead head;
  auto sample = parse_as<SampleRecord>(bytes, &head);
  expect_head(head);
  EXPECT_EQ(sample.kind, EventKind::waking);
  EXPECT_THAT(sample.raw, ElementsAreArray(raw));
}

TEST(Record, SampleOfAnUnknownEventKeepsItsHeadOnly) {
  Bytes bytes = fake::waking_sample(99, kHead, fake::stack_pattern(20));
  RecordHead head;
  auto sample = parse_as<SampleRecord>(bytes, &head);
  expect_head(head);
  EXPECT_EQ(sample.kind, EventKind::unknown);
  EXPECT_THAT(sample.raw, IsEmpty());
}

TEST(Record, SwitchRoundTrips) {
  RecordHead head;
  auto out = parse_as<SwitchRecord>(fake::switch_record(kHead, true), &head);
  expect_head(head);
  EXPECT_TRUE(out.out);
  EXPECT_FALSE(out.preempted);
  EXPECT_TRUE(parse_as<SwitchRecord>(fake::switch_record(kHead, true, true)).preempted);
  EXPECT_FALSE(parse_as<SwitchRecord>(fake::switch_record(kHead, false)).out);
  auto wide = parse_as<SwitchRecord>(fake::cpu_wide_switch_record(kHead, true, 77), &head);
  expect_head(head);
  EXPECT_TRUE(wide.out);
}

TEST(Record, MmapRoundTrips) {
  std::vector<uint8_t> build_id{1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  fake::Mapping mapping{0x7f0000000000, 0x21000, 0x3000, 5, build_id, "/usr/lib/libc.so.6"};
  Bytes bytes = fake::mmap2_record(kHead, mapping);
  RecordHead head;
  auto parsed = parse_as<MmapRecord>(bytes, &head);
  expect_head(head);
  EXPECT_EQ(record_time(bytes), kHead.time);
  EXPECT_EQ(parsed.start, mapping.start);
  EXPECT_EQ(parsed.length, mapping.length);
  EXPECT_EQ(parsed.file_offset, mapping.file_offset);
  EXPECT_TRUE(parsed.executable);
  EXPECT_EQ(parsed.path, mapping.path);
  EXPECT_THAT(parsed.build_id, ElementsAreArray(build_id));
}

TEST(Record, MmapWithoutBuildIdHasNone) {
  Bytes bytes = fake::mmap2_record(kHead, {0x1000, 0x1000, 0, 3, {}, "/tmp/data"});
  auto parsed = parse_as<MmapRecord>(bytes);
  EXPECT_THAT(parsed.build_id, IsEmpty());
  EXPECT_FALSE(parsed.executable);
}

TEST(Record, BuildIdLongerThanItsFieldIsCut) {
  Bytes bytes =
      fake::mmap2_record(kHead, {0x1000, 0x1000, 0, 5, std::vector<uint8_t>(200, 9), "/x"});
  EXPECT_EQ(parse_as<MmapRecord>(bytes).build_id.size(), 20u);
}

TEST(Record, CommRoundTrips) {
  Bytes bytes = fake::comm_record(kHead, kHead.pid, kHead.tid, "worker-17", true);
  RecordHead head;
  auto comm = parse_as<CommRecord>(bytes, &head);
  expect_head(head);
  EXPECT_TRUE(comm.exec);
  EXPECT_EQ(comm.name, "worker-17");
}

// pthread_setname_np on another thread: the calling thread writes the record, and it is about the
// other thread.
TEST(Record, CommNamesTheThreadThatWasRenamed) {
  RecordHead head;
  auto comm = parse_as<CommRecord>(fake::comm_record(kHead, 4000, 4099, "io-4099", false), &head);
  EXPECT_FALSE(comm.exec);
  expect_head(head, {.time = kHead.time, .pid = 4000, .tid = 4099, .cpu = kHead.cpu});
}

TEST(Record, ForkAndExitRoundTrip) {
  ForkRecord task{.pid = 10, .parent_pid = 20, .tid = 30, .parent_tid = 40};
  RecordHead head;
  auto fork = parse_as<ForkRecord>(fake::fork_record(kHead, task), &head);
  expect_head(head);
  EXPECT_EQ(fork.pid, 10);
  EXPECT_EQ(fork.parent_pid, 20);
  EXPECT_EQ(fork.tid, 30);
  EXPECT_EQ(fork.parent_tid, 40);
  auto exit = parse_as<ExitRecord>(fake::exit_record(kHead, task), &head);
  expect_head(head);
  EXPECT_EQ(exit.pid, 10);
  EXPECT_EQ(exit.tid, 30);
}

TEST(Record, LostAndThrottleRoundTrip) {
  RecordHead head;
  EXPECT_EQ(parse_as<LostRecord>(fake::lost_record(kHead, 17), &head).count, 17u);
  expect_head(head);
  EXPECT_EQ(parse_as<LostRecord>(fake::lost_samples_record(kHead, 18)).count, 18u);
  parse_as<ThrottleRecord>(fake::throttle_record(kHead, true), &head);
  expect_head(head);
  EXPECT_TRUE(parse_record(fake::throttle_record(kHead, false), kIds).has_value());
}

TEST(Record, SizesThatCannotBeRightAreRefused) {
  Bytes good = fake::stack_sample(sample_with_copy(64));
  const size_t chain_length_at = 8 + 32 + 8;
  const size_t copy_size_at = find_stack(good)->prefix_bytes;
  const size_t valid_at = good.size() - 8;
  auto with_word = [&good](size_t at, uint64_t word) {
    Bytes bytes = good;
    std::memcpy(bytes.data() + at, &word, sizeof word);
    return bytes;
  };
  for (uint64_t size :
       {UINT64_MAX, UINT64_MAX / 8, UINT64_MAX / 8 + 2, uint64_t{1} << 61, good.size()}) {
    EXPECT_FALSE(parse_record(with_word(chain_length_at, size), kIds)) << size;
    EXPECT_FALSE(find_stack(with_word(chain_length_at, size))) << size;
    EXPECT_FALSE(parse_record(with_word(copy_size_at, size), kIds)) << size;
    EXPECT_FALSE(find_stack(with_word(copy_size_at, size))) << size;
  }
  Bytes more_valid_than_copied = with_word(valid_at, UINT64_MAX);
  EXPECT_EQ(parse_as<SampleRecord>(more_valid_than_copied).stack.size(), 64u);
}

TEST(Record, EveryTruncationIsRefusedOrReadInBounds) {
  for (const Bytes& record : one_of_each()) {
    ASSERT_TRUE(parse_all(record));
    for (size_t size = 0; size < record.size(); ++size) {
      Bytes prefix(record.begin(), record.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_FALSE(parse_all(prefix))
          << "header promises more than the " << size << " bytes there are";
      EXPECT_FALSE(record_time(prefix));
      if (size < sizeof(perf_event_header)) continue;
      fake::set_size(prefix, size);
      bool parsed = parse_all(prefix);
      EXPECT_TRUE(!parsed || size % 8 == 0) << size;
    }
  }
}

TEST(Record, RandomDamageIsRefusedOrReadInBounds) {
  constexpr int kRounds = 200'000;
  std::mt19937_64 random(20240607);
  const std::vector<Bytes> records = one_of_each();
  const uint64_t words[] = {0,
                            1,
                            7,
                            8,
                            200,
                            0x7fff,
                            0xffff,
                            INT32_MAX,
                            UINT32_MAX,
                            1ull << 61,
                            INT64_MAX,
                            UINT64_MAX,
                            UINT64_MAX - 7,
                            PERF_CONTEXT_USER,
                            PERF_CONTEXT_KERNEL};
  int parsed = 0;
  for (int round = 0; round < kRounds; ++round) {
    Bytes bytes = records[random() % records.size()];
    for (uint64_t damage = random() % 4 + 1; damage > 0; --damage) {
      size_t word = random() % (bytes.size() / 8) * 8;
      switch (random() % 4) {
        case 0:
          bytes[random() % bytes.size()] = static_cast<std::byte>(random());
          break;
        case 1:
          std::memcpy(bytes.data() + word, &words[random() % std::size(words)], 8);
          break;
        case 2:
          bytes.resize(std::max<size_t>(8, word));
          break;
        case 3:
          bytes.resize(bytes.size() + random() % 8 * 8);
          break;
      }
    }
    if (random() % 4 != 0) fake::set_size(bytes, bytes.size());
    if (parse_all(bytes)) ++parsed;
  }
  EXPECT_GT(parsed, kRounds / 10) << "damage that never parses tests only the header";
  EXPECT_LT(parsed, kRounds);
}

TEST(Record, TrimmedCopyParsesToTheSameSample) {
  for (auto [copied, valid] :
       {std::pair(512u, 512u), {512u, 200u}, {512u, 8u}, {512u, 0u}, {0u, 0u}}) {
    Bytes whole = fake::stack_sample(sample_with_copy(copied, valid));
    auto cut = find_stack(whole);
    ASSERT_TRUE(cut);
    EXPECT_EQ(cut->copy_bytes, valid);
    Bytes small = trimmed(whole, *cut, cut->copy_bytes);
    Bytes bare = trimmed(whole, *cut, 0);
    EXPECT_LE(small.size(), whole.size());
    auto before = parse_as<SampleRecord>(whole);
    auto after = parse_as<SampleRecord>(small);
    auto without = parse_as<SampleRecord>(bare);
    EXPECT_THAT(after.stack, ElementsAreArray(before.stack));
    EXPECT_THAT(without.stack, IsEmpty());
    for (const SampleRecord& sample : {after, without}) {
      EXPECT_EQ(sample.kind, before.kind);
      EXPECT_EQ(sample.period, before.period);
      EXPECT_EQ(sample.registers.value, before.registers.value);
      EXPECT_THAT(sample.kernel_chain, ElementsAreArray(before.kernel_chain));
      EXPECT_THAT(sample.user_chain, ElementsAreArray(before.user_chain));
    }
    EXPECT_EQ(record_time(small), record_time(whole));
  }
}

TEST(Record, ACopyThatEndsWithinAWordIsCutToWholeWords) {
  auto cut = find_stack(fake::stack_sample(sample_with_copy(64, 61)));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->copy_bytes, 56u);
}

TEST(Record, OnlySamplesHaveAStack) {
  EXPECT_FALSE(find_stack(fake::switch_record(kHead, true)));
  EXPECT_FALSE(
      find_stack(fake::mmap2_record(kHead, {0x1000, 0x1000, 0, 5, {}, std::string(300, 'a')})));
  EXPECT_FALSE(find_stack({}));
}

}  // namespace
}  // namespace assay::capture
