#include "inject/preload/forks.h"

#include <atomic>

#include <pthread.h>

#include "inject/preload/attach_internal.h"
#include "inject/preload/channel_writer.h"
#include "inject/preload/heap_sampler.h"
#include "inject/preload/preload.h"
#include "inject/preload/thread_state.h"

namespace assay::inject {

namespace {

void in_child() {
  forget_changes();
  bool was_inside =
      thread_state.is_busy;  // forked by a signal's handler, in the middle of a sample
  thread_state.is_busy = false;
  if (!channel_writer.is_open()) return;
  ChannelSettings parents = channel_writer.settings();
  uint32_t parent = channel_writer.owner();
  channel_writer.forget(!was_inside);
  forget_live_samples();
  if (open_named_channel()) return;
  if (!has_hooked_slots() || !parents.is_sampling) return;
  if (channel_writer.claim_for_child(parent) || channel_writer.create_unnamed(parents))
    channel_writer.set_ready(1);
}

}  // namespace

void follow_forks() {
  static std::atomic<bool> follows{false};
  if (!follows.exchange(true)) pthread_atfork(hold_changes, release_changes, in_child);
}

}  // namespace assay::inject
