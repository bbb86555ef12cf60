#include <cstdlib>
#include <string_view>

#include "assay/assay.h"
#include "inject/inproc/cpu/cpu_profiler.h"
#include "inject/inproc/http/endpoints.h"
#include "inject/inproc/heap/heap_source.h"
#include "inject/inproc/lifecycle/label_table.h"
#include "inject/inproc/lifecycle/last_error.h"
#include "inject/inproc/lifecycle/lifecycle.h"
#include "inject/inproc/locks/lock_waits.h"
#include "inject/inproc/write/profile_files.h"

using namespace assay::inproc;

namespace {

// A caller may pass null for a text: it counts as an empty text.
std::string_view text_of(const char* text, size_t size) {
  return text == nullptr ? std::string_view("", 0) : std::string_view(text, size);
}

}  // namespace

extern "C" {

const char* assay_version(void) {
  return ASSAY_VERSION;
}

char* assay_last_error(char* text, size_t room) {
  return copy_last_error(text, room);
}

int assay_cpu_start(unsigned hz) {
  begin_lifecycle();
  CpuPlan plan;
  plan.hz = hz;
  const char* problem = start_cpu_profile(plan);
  return problem == nullptr ? 0 : fail("%s", problem);
}

int assay_cpu_stop(const struct assay_output* output) {
  CpuResult result;
  if (!stop_cpu_profile(result)) return fail("no CPU profile is running");
  ByteBuffer bytes;
  bool made = output == nullptr || write_cpu_profile(result, output->format, bytes);
  finish_cpu_profile();
  if (!made) return fail("no memory for the profile");
  return output == nullptr ? 0 : deliver(bytes, *output);
}

int assay_heap_snapshot(const struct assay_output* output) {
  if (output == nullptr) return fail("there is no output");
  if (!start_heap_sampling() && !heap_is_sampled())
    return fail("the heap is not sampled here: link or preload libassay.so");
  ByteBuffer bytes;
  return write_heap_profile(output->format, bytes) ? deliver(bytes, *output) : -1;
}

void assay_thread_begin(void) {
  cpu_profile_see_thread();
}

uint32_t assay_label_push(const char* key, size_t key_size, const char* value, size_t value_size) {
  cpu_profile_see_thread();
  return push_label(text_of(key, key_size), text_of(value, value_size));
}

void assay_label_pop(uint32_t what_push_returned) {
  pop_label(what_push_returned);
}

int assay_serve(const char* address, const char* token) {
  if (address == nullptr) return fail("there is no address: give HOST:PORT, or unix:/PATH");
  begin_lifecycle();
  char sentence[256];
  if (token == nullptr) token = secure_getenv("ASSAY_TOKEN");
  int port = start_http_server(address, token, answer_pprof, sentence, sizeof sentence);
  if (port < 0) return fail("%s", sentence);
  if (!waits_are_sampled()) set_lock_waits(kDefaultWaitNs);
  start_heap_sampling();
  return port;
}

void assay_serve_stop(void) {
  stop_http_server();
}

void assay_lock_waits(uint64_t mean_ns) {
  set_lock_waits(mean_ns);
}
}
