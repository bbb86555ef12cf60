#include "inject/inproc/lifecycle/label_table.h"

#include <atomic>
#include <cstring>

namespace assay::inproc {
namespace {

constexpr uint32_t kTextBits = 15, kSetBits = 17;
constexpr uint32_t kTextSlots = 1U << kTextBits, kSetSlots = 1U << kSetBits;
constexpr uint32_t kTextBytes = 4 << 20;
constexpr uint32_t kMaxProbes = 256;
constexpr uint64_t kTaken = uint64_t{1} << 63;

struct Text {
  std::atomic<uint64_t> hash;           // 0: free
  std::atomic<uint32_t> offset_plus_1;  // 0: not there yet
  uint32_t bytes;
};

// In .bss: pages that no label touches cost nothing.
Text texts[kTextSlots];
char text_bytes[kTextBytes];
std::atomic<uint32_t> text_bytes_used;
// A set is one word: the set around it, key and value. Its number is its slot plus one.
std::atomic<uint64_t> sets[kSetSlots];
std::atomic<uint64_t> dropped;

__attribute__((tls_model("initial-exec"))) thread_local LabelSet thread_labels = 0;

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return (hash ^ hash >> 29) | 1;
}

bool same(const Text& text, std::string_view wanted) {
  uint32_t offset = text.offset_plus_1.load(std::memory_order_acquire);
  return offset != 0 && text.bytes == wanted.size() &&
         std::memcmp(text_bytes + offset - 1, wanted.data(), wanted.size()) == 0;
}

bool fill(Text& text, std::string_view from) {
  auto bytes = static_cast<uint32_t>(from.size());
  if (text_bytes_used.load(std::memory_order_relaxed) > kTextBytes - bytes) return false;
  uint32_t offset = text_bytes_used.fetch_add(bytes, std::memory_order_relaxed);
  if (offset > kTextBytes - bytes) return false;
  std::memcpy(text_bytes + offset, from.data(), bytes);
  text.bytes = bytes;
  text.offset_plus_1.store(offset + 1, std::memory_order_release);
  return true;
}

// The text's slot; kTextSlots: there is no room.
uint32_t intern(std::string_view text) {
  uint64_t hash = hash_of(text);
  uint32_t index = hash >> 32 & (kTextSlots - 1);
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) & (kTextSlots - 1)) {
    Text& slot = texts[index];
    uint64_t seen = slot.hash.load(std::memory_order_acquire);
    if (seen == 0 && slot.hash.compare_exchange_strong(seen, hash))
      return fill(slot, text) ? index : kTextSlots;
    if (seen == hash && same(slot, text)) return index;
  }
  return kTextSlots;
}

LabelSet set_of(LabelSet around, uint32_t key, uint32_t value) {
  uint64_t word = kTaken | uint64_t{around} << 32 | uint64_t{key} << 16 | value;
  uint64_t mixed = word * 0x9e3779b97f4a7c15;
  uint32_t index = mixed >> 40 & (kSetSlots - 1);
  for (uint32_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) & (kSetSlots - 1)) {
    uint64_t seen = sets[index].load(std::memory_order_acquire);
    if (seen == word) return index + 1;
    if (seen == 0 && sets[index].compare_exchange_strong(seen, word)) return index + 1;
    if (seen == word) return index + 1;
  }
  return 0;
}

std::string_view text_of(uint32_t index) {
  const Text& text = texts[index & (kTextSlots - 1)];
  uint32_t offset = text.offset_plus_1.load(std::memory_order_acquire);
  if (offset == 0) return {};
  return {text_bytes + offset - 1, text.bytes};
}

std::string_view cut(std::string_view text) {
  return {text.data(), text.size() < kMaxLabelBytes ? text.size() : kMaxLabelBytes};
}

}  // namespace

LabelSet push_label(std::string_view key, std::string_view value) {
  LabelSet previous = thread_labels;
  uint32_t key_index = intern(cut(key));
  uint32_t value_index = key_index < kTextSlots ? intern(cut(value)) : kTextSlots;
  LabelSet set = value_index < kTextSlots ? set_of(previous, key_index, value_index) : 0;
  if (set == 0) {
    dropped.fetch_add(1, std::memory_order_relaxed);
    return previous;
  }
  thread_labels = set;
  return previous;
}

void pop_label(LabelSet previous) {
  thread_labels = previous <= kSetSlots ? previous : 0;
}

LabelSet current_label() {
  return thread_labels;
}

uint64_t dropped_labels() {
  return dropped.load(std::memory_order_relaxed);
}

size_t pairs_of(LabelSet set, LabelPair (&pairs)[kMaxLabelDepth]) {
  size_t count = 0;
  // The number of steps is bounded too, because the argument of pop_label is not trusted.
  for (uint32_t step = 0; set != 0 && set <= kSetSlots && step < 64 && count < kMaxLabelDepth;
       ++step) {
    uint64_t word = sets[set - 1].load(std::memory_order_acquire);
    if (word == 0) break;
    LabelPair pair{text_of(word >> 16 & 0xffff), text_of(word & 0xffff)};
    bool hidden = false;
    for (size_t i = 0; i < count; ++i) hidden = hidden || pairs[i].key == pair.key;
    if (!hidden) pairs[count++] = pair;
    set = word >> 32 & 0x3ffff;
  }
  return count;
}

}  // namespace assay::inproc
