#include "inject/inproc/write/write_text.h"

#include <algorithm>

#include "inject/inproc/lifecycle/label_table.h"

namespace assay::inproc {
namespace {

void addresses(const ProfileSample& sample, ByteBuffer& out) {
  for (uint32_t i = 0; i < sample.frames; ++i) out.print(" 0x%lx", sample.pcs[i]);
  out.append("\n");
}

void frame_line(const CodeAddress* code, uintptr_t pc, ByteBuffer& out) {
  const char* module = code != nullptr && code->module != nullptr ? code->module->path : "";
  if (code != nullptr && code->name != nullptr)
    out.print("#\t0x%lx\t%s+0x%lx\t%s\n", pc, code->name, pc - code->function_start, module);
  else
    out.print("#\t0x%lx\t?\t%s\n", pc, module);
}

void names(const Profile& profile, const ProfileSample& sample, const NamedCode& code,
           ByteBuffer& out) {
  LabelPair pairs[kMaxLabelDepth];
  size_t count = pairs_of(sample.label, pairs);
  if (count > 0) out.append("# labels:");
  for (size_t i = 0; i < count; ++i)
    out.print("%s \"%.*s\":\"%.*s\"", i > 0 ? "," : "", static_cast<int>(pairs[i].key.size()),
              pairs[i].key.data(), static_cast<int>(pairs[i].value.size()), pairs[i].value.data());
  if (count > 0) out.append("\n");
  for (uint32_t i = 0; i < sample.frames; ++i)
    frame_line(code.find(profile.code_address(sample, i)), sample.pcs[i], out);
  out.append("\n");
}

// Largest first, by the value at `index`.
void sort_by(const Profile& profile, size_t index) {
  std::sort(profile.samples, profile.samples + profile.count,
            [index](const ProfileSample& a, const ProfileSample& b) {
              return a.values[index] > b.values[index];
            });
}

}  // namespace

void write_contention_text(const Profile& profile, const NamedCode& code, const char* title,
                           ByteBuffer& out) {
  sort_by(profile, 1);
  out.print("--- %s:\ncycles/second=1000000000\nsampling period=1\n", title);
  for (size_t i = 0; i < profile.count; ++i) {
    const ProfileSample& sample = profile.samples[i];
    out.print("%ld %ld @", sample.values[1], sample.values[0]);
    addresses(sample, out);
    names(profile, sample, code, out);
  }
}

void write_count_text(const Profile& profile, const NamedCode& code, const char* title,
                      ByteBuffer& out) {
  sort_by(profile, 0);
  int64_t total = 0;
  for (size_t i = 0; i < profile.count; ++i) total += profile.samples[i].values[0];
  out.print("%s profile: total %ld\n", title, total);
  for (size_t i = 0; i < profile.count; ++i) {
    const ProfileSample& sample = profile.samples[i];
    out.print("%ld @", sample.values[0]);
    addresses(sample, out);
    names(profile, sample, code, out);
  }
}

void write_heap_text(const Profile& profile, const NamedCode& code, ByteBuffer& out) {
  sort_by(profile, 3);
  int64_t totals[kMaxValues] = {};
  for (size_t i = 0; i < profile.count; ++i)
    for (size_t k = 0; k < kMaxValues; ++k) totals[k] += profile.samples[i].values[k];
  // The numbers are estimates already, so the readers must not scale them: "heapprofile".
  out.print("heap profile: %ld: %ld [%ld: %ld] @ heapprofile\n", totals[2], totals[3], totals[0],
            totals[1]);
  for (size_t i = 0; i < profile.count; ++i) {
    const ProfileSample& sample = profile.samples[i];
    out.print("%ld: %ld [%ld: %ld] @", sample.values[2], sample.values[3], sample.values[0],
              sample.values[1]);
    addresses(sample, out);
    names(profile, sample, code, out);
  }
}

bool write_thread_text(const ThreadStack* stacks, size_t count, Arena& arena, ByteBuffer& out) {
  Profile all;
  all.exact_leaf = true;
  all.samples = arena.array<ProfileSample>(count + 1);
  if (all.samples == nullptr) return false;
  for (size_t i = 0; i < count; ++i) {
    ProfileSample& sample = all.samples[all.count++];
    sample.pcs = stacks[i].pcs;
    sample.frames = stacks[i].frames;
    sample.label = stacks[i].label;
  }
  NamedCode code;
  if (!code.make(all, arena)) return false;
  for (size_t i = 0; i < count; ++i) {
    out.print("thread %d \"%s\" [%c]:\n", stacks[i].tid, stacks[i].name, stacks[i].state);
    if (stacks[i].unasked != nullptr) out.print("# seen from outside: it %s\n", stacks[i].unasked);
    names(all, all.samples[i], code, out);
  }
  return true;
}

}  // namespace assay::inproc
