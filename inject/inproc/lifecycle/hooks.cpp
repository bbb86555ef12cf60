// The functions of the C library that libassay.so interposes: thread creation, and the calls that
// wait.
//
// A hook that is switched off is one load, one branch and the jump to the real function. Switched
// on, it first tries the lock, so that the clock is read only for real waits. Nothing here
// allocates or locks; results and errno are the real function's own.
#include <cerrno>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "inject/inproc/cpu/cpu_profiler.h"
#include "inject/inproc/lifecycle/lifecycle.h"
#include "inject/inproc/locks/lock_waits.h"
#include "inject/inproc/write/profile.h"
#include "inject/inproc/lifecycle/real_functions.h"

#define ASSAY_HOOK extern "C" __attribute__((visibility("default")))

namespace assay::inproc {
namespace {

// A function of the C library, looked up when it is first called (which may be before our
// constructor).
template <typename Signature>
class Real {
 public:
  constexpr explicit Real(const char* name, const char* version = nullptr)
      : name_(name), version_(version) {}
  Signature* get() {
    Signature* known = known_.load(std::memory_order_relaxed);
    return __builtin_expect(known != nullptr, 1) ? known : find();
  }

 private:
  __attribute__((noinline)) Signature* find() {
    void* found = version_ == nullptr ? nullptr : dlvsym(RTLD_NEXT, name_, version_);
    if (found == nullptr) found = dlsym(RTLD_NEXT, name_);
    auto* made = reinterpret_cast<Signature*>(found);
    known_.store(made, std::memory_order_relaxed);
    return made;
  }
  const char *name_, *version_;
  std::atomic<Signature*> known_ = nullptr;
};

// On x86-64 conditions have an older ABI under the same name; current programs use the newer one.
#if defined(__x86_64__)
constexpr const char* kConditionVersion = "GLIBC_2.3.2";
#else
constexpr const char* kConditionVersion = nullptr;
#endif

using Start = void*(void*);
Real<int(pthread_t*, const pthread_attr_t*, Start*, void*)> real_create("pthread_create");
Real<int(pthread_mutex_t*)> mutex_lock("pthread_mutex_lock"),
    mutex_trylock("pthread_mutex_trylock");
Real<int(pthread_mutex_t*, const timespec*)> mutex_timedlock("pthread_mutex_timedlock");
Real<int(pthread_mutex_t*, clockid_t, const timespec*)> mutex_clocklock("pthread_mutex_clocklock");
Real<int(pthread_rwlock_t*)> rwlock_rdlock("pthread_rwlock_rdlock"),
    rwlock_tryrdlock("pthread_rwlock_tryrdlock"), rwlock_wrlock("pthread_rwlock_wrlock"),
    rwlock_trywrlock("pthread_rwlock_trywrlock");
Real<int(pthread_cond_t*, pthread_mutex_t*)> cond_wait("pthread_cond_wait", kConditionVersion);
Real<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> cond_timedwait(
    "pthread_cond_timedwait", kConditionVersion);
Real<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> cond_clockwait(
    "pthread_cond_clockwait");
Real<int(sem_t*)> semaphore_wait("sem_wait"), semaphore_trywait("sem_trywait");
Real<int(sem_t*, const timespec*)> semaphore_timedwait("sem_timedwait");
Real<int(sem_t*, clockid_t, const timespec*)> semaphore_clockwait("sem_clockwait");
Real<pid_t()> real_setsid("setsid");

// What a new thread does before its own work, while a CPU profile runs.
struct Birth {
  std::atomic<bool> taken;
  Start* start;
  void* argument;
};
Birth births[256];

void* begin_thread(void* given) {
  auto* birth = static_cast<Birth*>(given);
  Start* start = birth->start;
  void* argument = birth->argument;
  birth->taken.store(false, std::memory_order_release);
  cpu_profile_new_thread();
  return start(argument);
}

Birth* take_birth() {
  for (Birth& birth : births) {
    bool taken = false;
    if (!birth.taken.load(std::memory_order_relaxed) &&
        birth.taken.compare_exchange_strong(taken, true))
      return &birth;
  }
  return nullptr;  // found by the next scan instead
}

// Tries first; only if that fails, waits and measures the time.
template <typename Try, typename Wait>
[[gnu::always_inline]] inline int timed(WaitKind kind, Try attempt, Wait wait,
                                        const void* return_address) {
  int result = attempt();
  if (__builtin_expect(result != EBUSY, 1)) return result;
  int64_t begin_ns = monotonic_ns();
  result = wait();
  record_wait(kind, begin_ns, return_address);
  return result;
}

// Conditions always wait.
template <typename Wait>
[[gnu::always_inline]] inline int clocked(WaitKind kind, Wait wait, const void* return_address) {
  int64_t begin_ns = monotonic_ns();
  int result = wait();
  int saved_errno = errno;
  record_wait(kind, begin_ns, return_address);
  errno = saved_errno;
  return result;
}

template <typename Wait>
[[gnu::always_inline]] inline int semaphore(sem_t* sem, Wait wait, const void* return_address) {
  if (!waits_are_sampled()) return wait();
  int saved_errno = errno;
  if (semaphore_trywait.get()(sem) == 0) return 0;
  errno = saved_errno;
  return clocked(WaitKind::semaphore, wait, return_address);
}

}  // namespace

int real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                        void* argument) {
  return real_create.get()(thread, attributes, start, argument);
}

bool hooks_are_here() {
  return true;
}

}  // namespace assay::inproc

using namespace assay::inproc;

ASSAY_HOOK int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  if (is_active()) record_thread_creation(__builtin_return_address(0));
  Birth* birth = cpu_profile_runs() ? take_birth() : nullptr;
  if (birth == nullptr) return real_create.get()(thread, attributes, start, argument);
  birth->start = start;
  birth->argument = argument;
  int result = real_create.get()(thread, attributes, begin_thread, birth);
  if (result != 0) birth->taken.store(false, std::memory_order_release);
  return result;
}

ASSAY_HOOK int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (!waits_are_sampled()) return mutex_lock.get()(mutex);
  return timed(
      WaitKind::mutex, [&] { return mutex_trylock.get()(mutex); },
      [&] { return mutex_lock.get()(mutex); }, __builtin_return_address(0));
}

ASSAY_HOOK int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
  if (!waits_are_sampled()) return mutex_timedlock.get()(mutex, until);
  return timed(
      WaitKind::mutex, [&] { return mutex_trylock.get()(mutex); },
      [&] { return mutex_timedlock.get()(mutex, until); }, __builtin_return_address(0));
}

ASSAY_HOOK int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                       const timespec* until) noexcept {
  if (!waits_are_sampled()) return mutex_clocklock.get()(mutex, clock, until);
  return timed(
      WaitKind::mutex, [&] { return mutex_trylock.get()(mutex); },
      [&] { return mutex_clocklock.get()(mutex, clock, until); }, __builtin_return_address(0));
}

ASSAY_HOOK int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  if (!waits_are_sampled()) return rwlock_rdlock.get()(lock);
  return timed(
      WaitKind::rwlock, [&] { return rwlock_tryrdlock.get()(lock); },
      [&] { return rwlock_rdlock.get()(lock); }, __builtin_return_address(0));
}

ASSAY_HOOK int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  if (!waits_are_sampled()) return rwlock_wrlock.get()(lock);
  return timed(
      WaitKind::rwlock, [&] { return rwlock_trywrlock.get()(lock); },
      [&] { return rwlock_wrlock.get()(lock); }, __builtin_return_address(0));
}

ASSAY_HOOK int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!waits_are_sampled()) return cond_wait.get()(condition, mutex);
  return clocked(
      WaitKind::condition, [&] { return cond_wait.get()(condition, mutex); },
      __builtin_return_address(0));
}

ASSAY_HOOK int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                      const timespec* until) {
  if (!waits_are_sampled()) return cond_timedwait.get()(condition, mutex, until);
  return clocked(
      WaitKind::condition, [&] { return cond_timedwait.get()(condition, mutex, until); },
      __builtin_return_address(0));
}

ASSAY_HOOK int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                      clockid_t clock, const timespec* until) {
  if (!waits_are_sampled()) return cond_clockwait.get()(condition, mutex, clock, until);
  return clocked(
      WaitKind::condition, [&] { return cond_clockwait.get()(condition, mutex, clock, until); },
      __builtin_return_address(0));
}

ASSAY_HOOK int sem_wait(sem_t* sem) {
  return semaphore(
      sem, [&] { return semaphore_wait.get()(sem); }, __builtin_return_address(0));
}

ASSAY_HOOK int sem_timedwait(sem_t* sem, const timespec* until) {
  return semaphore(
      sem, [&] { return semaphore_timedwait.get()(sem, until); }, __builtin_return_address(0));
}

ASSAY_HOOK int sem_clockwait(sem_t* sem, clockid_t clock, const timespec* until) {
  return semaphore(
      sem, [&] { return semaphore_clockwait.get()(sem, clock, until); },
      __builtin_return_address(0));
}

// A daemon forks, its parent exits, and it calls setsid: from then on it is the server.
ASSAY_HOOK pid_t setsid(void) noexcept {
  pid_t result = real_setsid.get()();
  int saved_errno = errno;
  if (result > 0) became_daemon();
  errno = saved_errno;
  return result;
}
