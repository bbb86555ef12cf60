#include "truth.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace truth {

namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

timespec to_timespec(int64_t ns) {
  return {ns / kNsPerSecond, ns % kNsPerSecond};
}

std::mutex g_mutex;
std::vector<std::shared_ptr<Account>> g_accounts;  // guarded by g_mutex; outlives its threads
volatile uint64_t g_sink;

}  // namespace

struct Account {
  pid_t tid = 0;
  std::string name;
  clockid_t cpu_clock{};
  int64_t begin_ns = 0, begin_cpu_ns = 0, begin_queued_ns = 0;
  std::atomic<int64_t> end_ns = 0, end_cpu_ns = 0, end_queued_ns = 0;  // 0: still running
  std::atomic<int64_t> wait_ns = 0, waits = 0;
  std::atomic<int64_t> wait_begin_ns = 0;  // 0: not waiting
};

int64_t now_ns() {
  return read_clock(CLOCK_MONOTONIC);
}
int64_t thread_cpu_ns() {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

// Time on a run queue, as the kernel counts it; 0 where it does not.
static int64_t queued_ns(pid_t tid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", static_cast<int>(tid));
  long ran = 0, queued = 0;
  if (FILE* file = std::fopen(path, "r")) {
    if (std::fscanf(file, "%ld %ld", &ran, &queued) != 2) queued = 0;
    std::fclose(file);
  }
  return queued;
}

Truth::Truth(const std::string& name) : account_(std::make_shared<Account>()) {
  account_->begin_ns = now_ns();
  account_->begin_cpu_ns = thread_cpu_ns();
  account_->tid = static_cast<pid_t>(syscall(SYS_gettid));
  account_->begin_queued_ns = queued_ns(account_->tid);
  pthread_getcpuclockid(pthread_self(), &account_->cpu_clock);
  if (!name.empty()) pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  char comm[16] = "";
  pthread_getname_np(pthread_self(), comm, sizeof comm);
  account_->name = comm;
  std::lock_guard lock(g_mutex);
  g_accounts.push_back(account_);
}

Truth::~Truth() {
  account_->end_queued_ns = queued_ns(account_->tid);
  account_->end_cpu_ns = thread_cpu_ns();
  account_->end_ns = now_ns();
}

void Truth::begin_wait() {
  account_->wait_begin_ns = now_ns();
}

void Truth::end_wait() {
  int64_t begin = account_->wait_begin_ns.exchange(0);
  account_->wait_ns += now_ns() - begin;
  ++account_->waits;
}

// One line, for a thread that ended or, as of now, for one that has not.
static std::string line_of(const Account& account) {
  int64_t end = account.end_ns, cpu = account.end_cpu_ns, wait = account.wait_ns,
          waits = account.waits, queued = account.end_queued_ns;
  if (end == 0) {
    queued = queued_ns(account.tid);
    end = now_ns();
    cpu = read_clock(account.cpu_clock);
    if (int64_t begin = account.wait_begin_ns) {
      wait += end - begin;
      ++waits;
    }
  }
  char text[512];
  int length = std::snprintf(
      text, sizeof text,
      "{\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"begin_ns\":%ld,\"wall_ns\":%ld,"
      "\"cpu_ns\":%ld,\"wait_ns\":%ld,\"waits\":%ld,\"queued_ns\":%ld}\n",
      static_cast<int>(getpid()), static_cast<int>(account.tid), account.name.c_str(),
      account.begin_ns, end - account.begin_ns, cpu - account.begin_cpu_ns, wait, waits,
      queued - account.begin_queued_ns);
  return std::string(text, static_cast<size_t>(length));
}

static void write_all(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t wrote = write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (wrote <= 0) return;  // no reader: not an error of this program
    done += static_cast<size_t>(wrote);
  }
}

void print_truths() {
  // Whole lines in writes of at most PIPE_BUF bytes, so that processes sharing a pipe do not mix
  // lines.
  constexpr size_t kPipeBuf = 4096;
  std::string chunk;
  std::lock_guard lock(g_mutex);
  for (const auto& account : g_accounts) {
    std::string line = line_of(*account);
    if (chunk.size() + line.size() > kPipeBuf) {
      write_all(chunk);
      chunk.clear();
    }
    chunk += line;
  }
  write_all(chunk);
}

void forget_truths() {
  std::lock_guard lock(g_mutex);
  g_accounts.clear();
}

Arguments::Arguments(int argc, char** argv, std::map<std::string, long> defaults,
                     std::vector<std::string> flags)
    : numbers_(std::move(defaults)) {
  flags.push_back("announce");
  auto usage = [&] {
    std::fprintf(stderr, "usage: %s [--for SECONDS]", argv[0]);
    for (const auto& [name, value] : numbers_)
      std::fprintf(stderr, " [--%s %ld]", name.c_str(), value);
    for (const auto& flag : flags) std::fprintf(stderr, " [--%s]", flag.c_str());
    std::fprintf(stderr, "\n");
    std::exit(2);
  };
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    name = name.starts_with("--") ? name.substr(2) : "";
    if (std::find(flags.begin(), flags.end(), name) != flags.end()) {
      set_[name] = true;
      continue;
    }
    if (i + 1 >= argc) usage();
    char* end = nullptr;
    double value = std::strtod(argv[++i], &end);
    if (end == argv[i] || *end != '\0' || value < 0) usage();
    if (name == "for") {
      seconds_ = value;
    } else if (numbers_.contains(name)) {
      numbers_[name] = static_cast<long>(value);
    } else {
      usage();
    }
  }
}

static sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

Deadline::Deadline(const Arguments& arguments) : Deadline(arguments.seconds()) {
  if (arguments.has("announce")) write_all("{\"ready\":" + std::to_string(getpid()) + "}\n");
}

Deadline::Deadline(double seconds) : end_ns_(now_ns() + static_cast<int64_t>(seconds * 1e9)) {
  sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void Deadline::wait_for_end(Truth& main_thread) {
  sigset_t set = ending_signals();
  while (!passed()) {
    timespec left = to_timespec(std::max<int64_t>(end_ns_ - now_ns(), 1));
    if (main_thread.wait([&] { return sigtimedwait(&set, nullptr, &left); }) > 0) {
      signalled_ = true;
      break;
    }
  }
  stop_ = true;
}

bool Deadline::passed_or_signalled() {
  sigset_t set = ending_signals();
  timespec at_once{};
  if (sigtimedwait(&set, nullptr, &at_once) > 0) signalled_ = stop_ = true;
  return passed();
}

bool Deadline::sleep_until(int64_t when_ns) const {
  // Slices of 50 ms, because the main thread handles SIGTERM, which does not interrupt this one.
  constexpr int64_t kSliceNs = 50'000'000;
  while (!passed()) {
    int64_t now = now_ns();
    if (now >= when_ns) return true;
    timespec until = to_timespec(std::min({when_ns, end_ns_, now + kSliceNs}));
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  return false;
}

void burn_chunk() {
  uint64_t x = 88172645463325252ull;
  for (int i = 0; i < 5000; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  g_sink = x;
}

void burn_cpu_ns(int64_t ns) {
  int64_t end = thread_cpu_ns() + ns;
  // Chunks shorter than what is left, so that short burns are not overshot by much.
  while (thread_cpu_ns() < end) {
    uint64_t x = g_sink | 1;
    int64_t left = end - thread_cpu_ns();
    int rounds = static_cast<int>(std::clamp<int64_t>(left / 4, 50, 10'000));
    for (int i = 0; i < rounds; ++i) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
    }
    g_sink = x;
  }
}

}  // namespace truth
