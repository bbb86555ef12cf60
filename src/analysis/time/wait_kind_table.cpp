// The rows of wait_kind.h. Kernel names are those of Linux 5.4 to 6.18; a renamed function needs a
// row for each name. Functions every sleep passes (schedule, schedule_timeout…) have no row on
// purpose.
#include <array>

#include <sys/syscall.h>

#include "analysis/time/wait_kind.h"

namespace assay::analysis {
namespace {

using enum BlockKind;

// The first row that matches wins, so special names come before prefixes that hold them.
constexpr NameRow kKernelRows[]{
    {"futex_wait", futex, Match::prefix},
    {"futex_lock_pi", futex},
    {"do_futex", futex},
    {"x64_sys_futex", futex, Match::prefix},
    {"ep_poll", poll},
    {"do_epoll_wait", poll},
    {"do_sys_poll", poll},
    {"do_poll", poll},
    {"do_select", poll},
    {"core_sys_select", poll},
    {"poll_schedule_timeout", poll},
    {"io_cqring_wait", poll},
    {"io_uring_enter", poll},
    {"read_events", poll},
    {"eventfd_read", poll},
    {"inotify_read", poll},
    {"fanotify_read", poll},
    {"signalfd_read", poll, Match::prefix},
    {"sk_wait_data", network_receive},
    {"skb_wait_for_more_packets", network_receive},
    {"skb_recv_datagram", network_receive},
    {"unix_stream_read_generic", network_receive},
    {"unix_stream_data_wait", network_receive},
    {"unix_accept", network_receive},
    {"inet_csk_accept", network_receive},
    {"inet_csk_wait_for_connect", network_receive},
    {"inet_wait_for_connect", network_receive},
    {"inet_stream_connect", network_receive},
    {"tcp_recvmsg", network_receive, Match::prefix},
    {"udp_recvmsg", network_receive},
    {"udpv6_recvmsg", network_receive},
    {"netlink_recvmsg", network_receive},
    {"sock_recvmsg", network_receive},
    {"sk_stream_wait_memory", network_send},
    {"sk_stream_wait_connect", network_send},
    {"sk_stream_wait_close", network_send},
    {"sock_alloc_send_pskb", network_send},
    {"sock_wait_for_wmem", network_send},
    {"unix_wait_for_peer", network_send},
    {"tcp_sendmsg", network_send, Match::prefix},
    {"unix_stream_sendmsg", network_send},
    {"unix_dgram_sendmsg", network_send},
    {"sock_sendmsg", network_send},
    {"io_schedule", disk, Match::prefix},
    {"blk_io_schedule", disk},
    {"bit_wait_io", disk},
    {"folio_wait_", disk, Match::prefix},
    {"folio_lock", disk, Match::prefix},
    {"wait_on_page_", disk, Match::prefix},
    {"wait_on_buffer", disk},
    {"filemap_", disk, Match::prefix},
    {"submit_bio_wait", disk},
    {"iomap_dio_rw", disk},
    {"balance_dirty_pages", disk, Match::prefix},
    {"jbd2_", disk, Match::prefix},
    {"ext4_", disk, Match::prefix},
    {"xfs_", disk, Match::prefix},
    {"btrfs_", disk, Match::prefix},
    {"f2fs_", disk, Match::prefix},
    {"nfs_", disk, Match::prefix},
    {"fuse_", disk, Match::prefix},
    {"request_wait_answer", disk},
    {"rq_qos_wait", disk},
    {"wbt_wait", disk},
    {"blk_mq_get_tag", disk},
    {"vfs_fsync_range", disk},
    {"do_fsync", disk},
    {"hrtimer_nanosleep", timer},
    {"do_nanosleep", timer},
    {"common_nsleep", timer, Match::prefix},
    {"timerfd_read", timer, Match::prefix},
    {"msleep", timer, Match::prefix},
    {"usleep_range", timer, Match::prefix},
    {"pipe_read", pipe},
    {"pipe_write", pipe},
    {"anon_pipe_read", pipe},
    {"anon_pipe_write", pipe},
    {"pipe_wait_", pipe, Match::prefix},
    {"fifo_pipe_read", pipe},
    {"fifo_pipe_write", pipe},
    {"wait_for_partner", pipe},
    {"do_wait", child},
    {"kernel_wait4", child},
    {"kernel_waitid", child},
    {"wait_for_vfork_done", child},
    {"posix_lock_inode_wait", lock},
    {"flock_lock_inode_wait", lock},
    {"locks_lock_inode_wait", lock},
    {"fcntl_setlk", lock, Match::prefix},
    {"rwsem_down_", lock, Match::prefix},
    {"mutex_lock", lock, Match::prefix},
    {"dma_fence_", accelerator, Match::prefix},
    {"drm_syncobj_", accelerator, Match::prefix},
    {"kfd_wait_on_events", accelerator},
    {"amdgpu_", accelerator, Match::prefix},
    {"i915_request_wait", accelerator, Match::prefix},
    {"xe_wait_user_fence_ioctl", accelerator},
    {"os_acquire_semaphore", accelerator},  // NVIDIA's module
    {"n_tty_read", other},
    {"n_tty_write", other},
    {"do_sigtimedwait", other},
    {"sigsuspend", other},
    {"x64_sys_pause", other},
    {"ptrace_stop", other},
    {"do_signal_stop", other},
    {"do_freezer_trap", other},
    {"do_exit", other},
    {"synchronize_rcu", other, Match::prefix},
};

constexpr std::string_view kPageFaultHandlers[]{
    "asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "handle_mm_fault",
    "do_page_fault",      "page_fault",     "do_async_page_fault"};

// Locks and flushes that programs build themselves, out of semaphores, latches and sleeps.
constexpr MeaningRow kMeaningRows[]{
    {{"take_gil", lock}},  // CPython
    // PostgreSQL: locks on rows and tables, on its shared memory, its spinlocks; flushes of the
    // log.
    {{"ProcSleep", lock}, LockIdentity::function},
    {{"LWLockAcquire", lock, Match::prefix}, LockIdentity::function},
    {{"LWLockWaitForVar", lock}, LockIdentity::function},
    {{"s_lock", lock}, LockIdentity::function},
    {{"XLogFlush", disk}},
    {{"SyncRepWaitForLSN", network_receive}},
    // MariaDB and MySQL: locks on rows, on tables and their definitions; flushes of the log.
    {{"lock_wait", lock}, LockIdentity::function_of_process},
    {{"lock_wait_suspend_thread", lock}, LockIdentity::function_of_process},
    {{"MDL_wait::timed_wait", lock}, LockIdentity::function_of_process},
    {{"MDL_context::acquire_lock", lock}, LockIdentity::function_of_process},
    {{"thr_lock", lock}, LockIdentity::function_of_process},
    {{"log_write_up_to", disk}},
    // Java's monitors, Ruby's global lock.
    {{"ObjectMonitor::enter", lock, Match::prefix}, LockIdentity::function_of_process},
    {{"ObjectMonitor::Enter", lock, Match::prefix}, LockIdentity::function_of_process},
    {{"ObjectMonitor::wait", condition}},
    {{"gvl_acquire", lock, Match::prefix}},
    {{"thread_sched_wait_running_turn", lock}},
};

// Calls that end when the device is done: exported, so that they have a name in every library.
// Those of rules/categories/accelerators.toml are the same; a test holds it.
constexpr NameRow kAcceleratorCalls[]{
    // NVIDIA: the driver's library and the runtime's.
    {"cuStreamSynchronize", accelerator, Match::prefix},
    {"cuCtxSynchronize", accelerator, Match::prefix},
    {"cuEventSynchronize", accelerator, Match::prefix},
    {"cuMemcpyDtoH", accelerator, Match::prefix},
    {"cudaStreamSynchronize", accelerator, Match::prefix},
    {"cudaDeviceSynchronize", accelerator},
    {"cudaThreadSynchronize", accelerator},
    {"cudaEventSynchronize", accelerator, Match::prefix},
    // AMD
    {"hipStreamSynchronize", accelerator, Match::prefix},
    {"hipDeviceSynchronize", accelerator},
    {"hipEventSynchronize", accelerator},
    {"hipMemcpyDtoH", accelerator, Match::prefix},
    {"hsa_signal_wait_", accelerator, Match::prefix},
    {"hsa_amd_signal_wait_", accelerator, Match::prefix},
    {"hsaKmtWaitOnEvent", accelerator, Match::prefix},
    {"hsaKmtWaitOnMultipleEvents", accelerator, Match::prefix},
    // Intel
    {"zeFenceHostSynchronize", accelerator},
    {"zeEventHostSynchronize", accelerator},
    {"zeCommandQueueSynchronize", accelerator},
    {"zeCommandListHostSynchronize", accelerator},
    // All
    {"clFinish", accelerator},
    {"clWaitForEvents", accelerator},
    {"vkQueueWaitIdle", accelerator},
    {"vkDeviceWaitIdle", accelerator},
    {"vkWaitForFences", accelerator},
    {"vkWaitSemaphores", accelerator, Match::prefix},
};

// Libraries of drivers, by the beginning of their file's name.
constexpr std::string_view kAcceleratorModules[]{
    "libcuda.so",       "libcuda.",        "libcudart.so",        "libcudart-",
    "libnvidia-",       "libamdhip64.so",  "libhsa-runtime64.so", "libhsakmt.so",
    "libdrm_amdgpu.so", "libze_loader.so", "libze_intel_gpu.so",  "libigdrcl.so",
    "libOpenCL.so",     "libtt_",
};

// Beneath a futex these tell its use; without kernel evidence they tell the kind by themselves.
constexpr NameRow kUserRows[]{
    {"lll_lock_wait", lock, Match::prefix},
    {"pthread_mutex_cond_lock", lock},
    {"pthread_mutex_lock", lock, Match::prefix},
    {"pthread_mutex_timedlock", lock},
    {"pthread_mutex_clocklock", lock},
    {"pthread_rwlock_", lock, Match::prefix},
    {"cxa_guard_acquire", lock},
    {"std::mutex::lock", lock},
    {"std::recursive_mutex::lock", lock},
    {"::Mutex::Lock", lock, Match::suffix},
    {"::Mutex::LockSlow", lock, Match::suffix},
    {"::Mutex::LockSlowLoop", lock, Match::suffix},
    {"AbslInternalSpinLockDelay", lock, Match::prefix},
    {"::Mutex::lock_contended", lock, Match::suffix},
    {"::Mutex>::lock_contended", lock, Match::suffix},  // as newer compilers name it
    {"::RwLock>::read_contended", lock, Match::suffix},
    {"::RwLock>::write_contended", lock, Match::suffix},
    {"parking_lot::raw_mutex::RawMutex::lock_slow", lock},
    // Go's profiles of contention name who waited (Lock) or who kept the lock (Unlock).
    {"sync.(*Mutex).Lock", lock, Match::suffix},  // of internal/sync, too
    {"sync.(*Mutex).lockSlow", lock, Match::suffix},
    {"sync.(*Mutex).Unlock", lock, Match::suffix},
    {"sync.(*RWMutex).", lock, Match::prefix},
    {"runtime.lock", lock},
    {"runtime.lock2", lock},
    {"runtime.unlock", lock},
    {"runtime.unlock2", lock},
    {"runtime._LostContendedRuntimeLock", lock},
    {"sync.(*Cond).Wait", condition},
    {"sync.(*WaitGroup).Wait", condition},
    {"runtime.selectgo", condition},
    {"runtime.chanrecv", condition, Match::prefix},
    {"runtime.chansend", condition, Match::prefix},
    {"pthread_cond_", condition, Match::prefix},
    {"gpr_cv_wait", condition},
    {"sem_wait", condition},
    {"new_sem_wait", condition, Match::prefix},
    {"sem_timedwait", condition},
    {"sem_clockwait", condition},
    {"pthread_barrier_wait", condition},
    {"pthread_join", condition},
    {"pthread_clockjoin_ex", condition},
    {"pthread_timedjoin_np", condition},
    {"std::condition_variable::wait", condition, Match::prefix},
    {"::CondVar::WaitCommon", condition, Match::suffix},
    {"::Condvar::wait", condition, Match::suffix},
    {"epoll_wait", poll},
    {"epoll_pwait", poll, Match::prefix},
    {"poll", poll},
    {"ppoll", poll},
    {"select", poll},
    {"pselect", poll, Match::prefix},
    {"accept", network_receive},
    {"accept4", network_receive},
    {"recv", network_receive},
    {"recvfrom", network_receive},
    {"recvmsg", network_receive},
    {"libc_recv", network_receive, Match::prefix},
    {"connect", network_receive},
    {"send", network_send},
    {"sendto", network_send},
    {"sendmsg", network_send},
    {"libc_send", network_send, Match::prefix},
    {"nanosleep", timer},
    {"clock_nanosleep", timer},
    {"usleep", timer},
    {"sleep", timer},
    {"fsync", disk},
    {"fdatasync", disk},
    {"wait4", child},
    {"waitpid", child},
    {"waitid", child},
    {"futex_abstimed_wait", futex, Match::prefix},
    {"runtime.futex", futex, Match::prefix},
};

constexpr uint16_t kFutexWait = 455;  // newer than Debian 12's headers
constexpr uint16_t kFutexWaitv = 449;

constexpr SyscallRow kSyscallRows[]{
    {SYS_futex, futex},
    {kFutexWait, futex},
    {kFutexWaitv, futex},
    {SYS_epoll_wait, poll},
    {SYS_epoll_pwait, poll},
    {SYS_epoll_pwait2, poll},
    {SYS_poll, poll},
    {SYS_ppoll, poll},
    {SYS_select, poll},
    {SYS_pselect6, poll},
    {SYS_io_uring_enter, poll},
    {SYS_io_getevents, poll},
    {SYS_io_pgetevents, poll},
    {SYS_accept, network_receive},
    {SYS_accept4, network_receive},
    {SYS_connect, network_receive},
    {SYS_recvfrom, network_receive},
    {SYS_recvmsg, network_receive},
    {SYS_recvmmsg, network_receive},
    {SYS_sendto, network_send},
    {SYS_sendmsg, network_send},
    {SYS_sendmmsg, network_send},
    {SYS_sendfile, other, true},
    {SYS_splice, other, true},
    {SYS_read, other, true},
    {SYS_readv, other, true},
    {SYS_write, other, true},
    {SYS_writev, other, true},
    {SYS_pread64, disk},
    {SYS_preadv, disk},
    {SYS_preadv2, disk},
    {SYS_pwrite64, disk},
    {SYS_pwritev, disk},
    {SYS_pwritev2, disk},
    {SYS_fsync, disk},
    {SYS_fdatasync, disk},
    {SYS_sync, disk},
    {SYS_syncfs, disk},
    {SYS_msync, disk},
    {SYS_sync_file_range, disk},
    {SYS_open, disk},
    {SYS_openat, disk},
    {SYS_ftruncate, disk},
    {SYS_fallocate, disk},
    {SYS_rename, disk},
    {SYS_renameat2, disk},
    {SYS_unlink, disk},
    {SYS_unlinkat, disk},
    {SYS_getdents64, disk},
    {SYS_nanosleep, timer},
    {SYS_clock_nanosleep, timer},
    {SYS_wait4, child},
    {SYS_waitid, child},
    {SYS_vfork, child},
    {SYS_flock, lock},
    {SYS_fcntl, lock},
    {SYS_pause, other},
    {SYS_rt_sigsuspend, other},
    {SYS_rt_sigtimedwait, other},
    {SYS_exit, other},
    {SYS_exit_group, other},
};

}  // namespace

std::span<const NameRow> kernel_rows() {
  return kKernelRows;
}
std::span<const NameRow> user_rows() {
  return kUserRows;
}
std::span<const MeaningRow> meaning_rows() {
  return kMeaningRows;
}
std::span<const NameRow> accelerator_calls() {
  return kAcceleratorCalls;
}
bool is_accelerator_module(std::string_view module) {
  for (std::string_view begin : kAcceleratorModules) {
    if (module.starts_with(begin)) return true;
  }
  return false;
}
std::span<const SyscallRow> syscall_rows() {
  return kSyscallRows;
}

bool is_page_fault_handler(std::string_view kernel_function) {
  std::string_view name = normal_name(kernel_function);
  for (std::string_view handler : kPageFaultHandlers) {
    if (name == handler) return true;
  }
  return false;
}

}  // namespace assay::analysis
