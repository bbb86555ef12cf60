#include "analysis/time/wait_kind.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace assay::analysis {
namespace {

using model::FdKind;
using Names = std::vector<std::string_view>;

// A name the row matches, as it would stand in a stack.
std::string example(const NameRow& row) {
  std::string name(row.name);
  if (row.match == Match::prefix) return name + "x";
  return row.match == Match::suffix ? "absl::lts_20220623" + name : name;
}

TEST(WaitKind, EveryKernelRowIsReachedBehindTheScheduler) {
  for (const NameRow& row : kernel_rows()) {
    std::string name = "__" + example(row) + ".constprop.0";
    StackEvidence found = evidence_of(Names{"__schedule", "schedule", name, "do_syscall_64"}, {});
    EXPECT_EQ(found.kernel, row.kind) << name;
  }
}

TEST(WaitKind, EveryUserRowIsReached) {
  for (const NameRow& row : user_rows()) {
    std::string name =
        example(row) + (row.name.find("::") != row.name.npos ? "(int)" : "@@GLIBC_2.34");
    EXPECT_EQ(evidence_of({}, Names{name, "work()", "main"}).user, row.kind) << name;
  }
}

TEST(WaitKind, EverySyscallRowIsReached) {
  std::set<uint16_t> seen;
  for (const SyscallRow& row : syscall_rows()) {
    EXPECT_TRUE(seen.insert(row.number).second) << "twice: " << row.number;
    EXPECT_EQ(classify({}, row.number, FdKind::none), row.kind) << row.number;
  }
}

TEST(WaitKind, ReadAndWriteGoByTheDescriptor) {
  const std::map<FdKind, BlockKind> reads{{FdKind::file, BlockKind::disk},
                                          {FdKind::pipe, BlockKind::pipe},
                                          {FdKind::socket_listen, BlockKind::network_receive},
                                          {FdKind::socket_stream, BlockKind::network_receive},
                                          {FdKind::socket_datagram, BlockKind::network_receive},
                                          {FdKind::socket_unix, BlockKind::network_receive},
                                          {FdKind::epoll, BlockKind::poll},
                                          {FdKind::eventfd, BlockKind::poll},
                                          {FdKind::signalfd, BlockKind::poll},
                                          {FdKind::inotify, BlockKind::poll},
                                          {FdKind::io_uring, BlockKind::poll},
                                          {FdKind::timerfd, BlockKind::timer},
                                          {FdKind::device, BlockKind::other},
                                          {FdKind::other, BlockKind::other},
                                          {FdKind::none, BlockKind::other}};
  for (auto [fd, kind] : reads) EXPECT_EQ(classify({}, SYS_read, fd), kind);
  EXPECT_EQ(classify({}, SYS_write, FdKind::socket_stream), BlockKind::network_send);
  EXPECT_EQ(classify({}, SYS_writev, FdKind::socket_unix), BlockKind::network_send);
  EXPECT_EQ(classify({}, SYS_write, FdKind::file), BlockKind::disk);
}

TEST(WaitKind, EveryMeaningBeatsTheCallThatItWaitsWith) {
  for (const MeaningRow& row : meaning_rows()) {
    StackEvidence found =
        evidence_of(Names{"schedule", "do_epoll_wait"}, Names{"epoll_wait", example(row), "main"});
    EXPECT_EQ(classify(found, SYS_epoll_wait, FdKind::epoll), row.kind) << row.name;
  }
}

TEST(WaitKind, TheOutermostMeaningTells) {
  Names flush{"sem_wait", "PGSemaphoreLock", "LWLockAcquireOrWait", "XLogFlush", "CommitTransaction"};
  EXPECT_EQ(classify(evidence_of({}, flush), SYS_futex, FdKind::none), BlockKind::disk);
  Names far{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "ProcSleep"};
  EXPECT_EQ(evidence_of({}, far).meaning, BlockKind::unknown) << "the caller's business";
}

TEST(WaitKind, AFaultIsAFaultWhateverItWaitsFor) {
  StackEvidence fault = evidence_of(
      Names{"schedule", "io_schedule", "folio_wait_bit_common", "filemap_fault", "handle_mm_fault",
            "do_user_addr_fault", "exc_page_fault", "asm_exc_page_fault"},
      Names{"main"});
  EXPECT_EQ(classify(fault, model::kNoSyscall, FdKind::none), BlockKind::page_fault);
}

TEST(WaitKind, FutexIsToldApartByItsCaller) {
  Names kernel{"schedule", "futex_wait_queue", "__futex_wait", "do_futex"};
  auto kind = [&](Names user) {
    return classify(evidence_of(kernel, user), SYS_futex, FdKind::none);
  };
  EXPECT_EQ(kind({"__lll_lock_wait", "pthread_mutex_lock@@GLIBC_2.2.5"}), BlockKind::lock);
  EXPECT_EQ(kind({"__futex_abstimed_wait_common64", "__pthread_cond_wait_common",
                  "pthread_cond_wait@@GLIBC_2.3.2"}),
            BlockKind::condition);
  // Taking the mutex again after a signal is a wait for the lock.
  EXPECT_EQ(kind({"__lll_lock_wait", "__pthread_mutex_cond_lock", "pthread_cond_wait"}),
            BlockKind::lock);
  EXPECT_EQ(kind({"runtime.futex.abi0", "runtime.futexsleep"}), BlockKind::futex);
  EXPECT_EQ(kind({}), BlockKind::futex);
  // A condition far up the stack is the caller's business.
  EXPECT_EQ(kind({"a", "b", "c", "d", "e", "f", "g", "h", "pthread_cond_wait"}), BlockKind::futex);
  // Without kernel frames the system call says futex and the caller its use.
  EXPECT_EQ(classify(evidence_of({}, Names{"__lll_lock_wait"}), SYS_futex, FdKind::none),
            BlockKind::lock);
}

using Places = std::vector<CodePlace>;
BlockKind kind_with(const Places& user, Names names = {}) {
  StackEvidence evidence = evidence_of(Names{"schedule", "do_sys_poll"}, names);
  add_accelerator_evidence(user, evidence);
  return classify(evidence, SYS_poll, FdKind::none);
}

TEST(WaitKind, EveryCallThatWaitsForADeviceIsReached) {
  for (const NameRow& row : accelerator_calls()) {
    std::string name = example(row);
    EXPECT_EQ(kind_with(Places{{"poll", "libc.so.6"}, {name, "libany.so"}, {"main", "server"}}),
              BlockKind::accelerator)
        << name;
  }
}

TEST(WaitKind, ADriverThatTheProgramCalledWaitsForItsDevice) {
  Places called{{"poll", "libc.so.6"}, {"0x1", "libcuda.so.550.54"}, {"main", "server"}};
  EXPECT_EQ(kind_with(called), BlockKind::accelerator);
  // Its own thread, and a library above which the driver is only a caller.
  Places own{{"poll", "libc.so.6"}, {"0x1", "libcuda.so.550.54"}, {"start_thread", "libc.so.6"}};
  EXPECT_EQ(kind_with(own), BlockKind::poll);
  Places callback{{"poll", "libc.so.6"}, {"on_done", "server"}, {"0x1", "libcuda.so.1"}};
  EXPECT_EQ(kind_with(callback), BlockKind::poll);
}

TEST(WaitKind, ADriversLockIsALockUnlessItWaitsForTheDevice) {
  Places launch{{"__lll_lock_wait", "libc.so.6"},
                {"0x1", "libcuda.so.1"},
                {"cuLaunchKernel", "libcuda.so.1"},
                {"main", "server"}};
  StackEvidence evidence = evidence_of(Names{"do_futex"}, Names{"__lll_lock_wait"});
  add_accelerator_evidence(launch, evidence);
  EXPECT_EQ(classify(evidence, SYS_futex, FdKind::none), BlockKind::lock);
  launch[2].function = "cuStreamSynchronize";
  add_accelerator_evidence(launch, evidence);
  EXPECT_EQ(classify(evidence, SYS_futex, FdKind::none), BlockKind::accelerator);
}

TEST(WaitKind, KernelFramesOutrankTheDescriptor) {
  StackEvidence send = evidence_of(Names{"schedule", "sk_stream_wait_memory", "tcp_sendmsg"}, {});
  EXPECT_EQ(classify(send, SYS_write, FdKind::none), BlockKind::network_send);
}

TEST(WaitKind, NothingKnownIsUnknownAndSomethingUnlistedIsOther) {
  EXPECT_EQ(classify({}, model::kNoSyscall, FdKind::none), BlockKind::unknown);
  EXPECT_EQ(classify({}, 9999, FdKind::none), BlockKind::other);
  EXPECT_EQ(classify(evidence_of(Names{"strange_wait"}, {}), model::kNoSyscall, FdKind::none),
            BlockKind::other);
}

TEST(WaitKind, NamesAreNormalised) {
  EXPECT_EQ(normal_name("__GI___pthread_mutex_lock"), "pthread_mutex_lock");
  EXPECT_EQ(normal_name("futex_wait_queue.isra.0"), "futex_wait_queue");
  EXPECT_EQ(normal_name("std::mutex::lock()"), "std::mutex::lock");
  EXPECT_EQ(normal_name("runtime.futexsleep"), "runtime.futexsleep");
  EXPECT_EQ(normal_name(""), "");
  EXPECT_EQ(normal_name("____"), "");
}

TEST(WaitKind, IdsAreDistinct) {
  std::set<std::string_view> ids;
  for (int kind = 0; kind < kBlockKindCount; ++kind) {
    ids.insert(block_kind_id(static_cast<BlockKind>(kind)));
    EXPECT_FALSE(block_kind_name(static_cast<BlockKind>(kind)).empty());
  }
  EXPECT_EQ(ids.size(), static_cast<size_t>(kBlockKindCount));
}

TEST(WaitKind, GoNamesItsLocksByTypeAndMethod) {
  EXPECT_EQ(normal_name("sync.(*Mutex).Lock"), "sync.(*Mutex).Lock");
  EXPECT_EQ(normal_name("Table::put(int, void (*)(int))"), "Table::put");
  auto kind = [](std::string_view leaf) { return evidence_of({}, Names{leaf, "main.work"}).user; };
  EXPECT_EQ(kind("internal/sync.(*Mutex).lockSlow"), BlockKind::lock);
  EXPECT_EQ(kind("sync.(*RWMutex).RUnlock"), BlockKind::lock);
  EXPECT_EQ(kind("runtime.chanrecv1"), BlockKind::condition);
  EXPECT_EQ(kind("main.(*Mutex).LockUp"), BlockKind::unknown);
}

}  // namespace
}  // namespace assay::analysis
