#include "inject/inproc/cpu/own_threads.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/lifecycle/real_functions.h"

namespace assay::inproc {
namespace {

constexpr size_t kMaxOwnThreads = 32;
constexpr size_t kStackBytes = 512 << 10;

std::atomic<int> own_tids[kMaxOwnThreads];

struct Start {
  std::atomic<bool> taken;
  const char* name;
  void (*body)(void*);
  void* argument;
};
Start starts[kMaxOwnThreads];

void* run(void* given) {
  auto* start = static_cast<Start*>(given);
  const char* name = start->name;
  void (*body)(void*) = start->body;
  void* argument = start->argument;
  start->taken.store(false, std::memory_order_release);
  pthread_setname_np(pthread_self(), name);
  int tid = current_tid();
  std::atomic<int>* own = nullptr;
  for (auto& slot : own_tids) {
    int empty = 0;
    if (slot.compare_exchange_strong(empty, tid)) {
      own = &slot;
      break;
    }
  }
  body(argument);
  if (own != nullptr) own->store(0);
  return nullptr;
}

Start* take_start() {
  for (Start& start : starts) {
    bool taken = false;
    if (start.taken.compare_exchange_strong(taken, true)) return &start;
  }
  return nullptr;
}

}  // namespace

int current_tid() {
  return static_cast<int>(syscall(SYS_gettid));
}

bool status_blocks(const char* status, int signal) {
  const char* mask = std::strstr(status, "\nSigBlk:\t");
  return mask != nullptr && (std::strtoull(mask + 9, nullptr, 16) >> (signal - 1) & 1) != 0;
}

bool thread_blocks(int tid, int signal) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
  ByteBuffer text;
  if (!read_whole_file(path, text)) return false;
  text.append("", 1);
  return status_blocks(text.data(), signal);
}

bool start_own_thread(const char* name, void (*body)(void*), void* argument) {
  Start* start = take_start();
  if (start == nullptr) return false;
  start->name = name;
  start->body = body;
  start->argument = argument;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  int failed = real_pthread_create(&thread, &attributes, run, start);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0) start->taken.store(false, std::memory_order_release);
  return failed == 0;
}

bool is_own_thread(int tid) {
  for (const auto& slot : own_tids)
    if (slot.load(std::memory_order_relaxed) == tid) return true;
  return false;
}

void forget_own_threads() {
  for (auto& slot : own_tids) slot.store(0);
  for (Start& start : starts) start.taken.store(false);
}

bool for_each_thread(void (*visit)(int tid, void* argument), void* argument) {
  int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  alignas(dirent64) char entries[8192];
  for (;;) {
    long got = syscall(SYS_getdents64, fd, entries, sizeof entries);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      auto* entry = reinterpret_cast<dirent64*>(entries + at);
      int tid = std::atoi(entry->d_name);
      if (tid > 0) visit(tid, argument);
      at += entry->d_reclen;
    }
  }
  close(fd);
  return true;
}

}  // namespace assay::inproc
