// Burns CPU at the end of stacks that are hard to walk, chosen by exactly one of:
//   --signal     in a handler on an alternate signal stack, raised from ordinary code
//   --alarm      in such a handler that interrupts a sleep
//   --context    in a coroutine with a stack of its own (makecontext)
//   --library    in ./libpart.so's part_work(), loaded with dlopen and unloaded again and again
// Each ends in busy_at_the_end(), called from functions with telling names.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "truth.h"

namespace {

constexpr int64_t kSliceNs = 5'000'000;

[[gnu::noinline]] void busy_at_the_end() {
  truth::burn_cpu_ns(kSliceNs);
  asm volatile("" ::: "memory");
}

void on_signal(int) {
  busy_at_the_end();
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void interrupted_work() {
  raise(SIGUSR1);
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void interrupted_sleep() {
  timespec long_enough{1, 0};
  nanosleep(&long_enough, nullptr);
  asm volatile("" ::: "memory");
}

void handle_on_its_own_stack(int signal, std::vector<char>& stack) {
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(signal, &action, nullptr);
}

void live_in_signals(const truth::Deadline& deadline) {
  std::vector<char> stack(256 * 1024);
  handle_on_its_own_stack(SIGUSR1, stack);
  while (!deadline.passed()) interrupted_work();
}

void live_in_alarms(const truth::Deadline& deadline) {
  std::vector<char> stack(256 * 1024);
  handle_on_its_own_stack(SIGALRM, stack);
  itimerval every{{0, 3 * kSliceNs / 1000}, {0, 3 * kSliceNs / 1000}};
  setitimer(ITIMER_REAL, &every, nullptr);
  while (!deadline.passed()) interrupted_sleep();
  itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
}

ucontext_t g_caller;
ucontext_t g_coroutine;

[[gnu::noinline]] void coroutine_step() {
  busy_at_the_end();
  asm volatile("" ::: "memory");
}

void coroutine_body() {
  while (true) {
    coroutine_step();
    swapcontext(&g_coroutine, &g_caller);
  }
}

void live_in_a_coroutine(const truth::Deadline& deadline) {
  std::vector<char> stack(256 * 1024);
  getcontext(&g_coroutine);
  g_coroutine.uc_stack.ss_sp = stack.data();
  g_coroutine.uc_stack.ss_size = stack.size();
  g_coroutine.uc_link = &g_caller;
  makecontext(&g_coroutine, coroutine_body, 0);
  while (!deadline.passed()) swapcontext(&g_caller, &g_coroutine);
}

void live_in_a_library(const char* path, const truth::Deadline& deadline) {
  while (!deadline.passed()) {
    void* library = dlopen(path, RTLD_NOW);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(1);
    }
    auto* work = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "part_work"));
    for (int i = 0; i < 20; ++i) work(busy_at_the_end);
    dlclose(library);
  }
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {}, {"signal", "alarm", "context", "library"});
  truth::Deadline deadline(arguments);
  truth::Truth self("");
  if (arguments.has("signal")) live_in_signals(deadline);
  if (arguments.has("alarm")) live_in_alarms(deadline);
  if (arguments.has("context")) live_in_a_coroutine(deadline);
  if (arguments.has("library")) {
    const char* path = std::getenv("PART_LIBRARY");
    live_in_a_library(path != nullptr ? path : "./libpart.so", deadline);
  }
  truth::print_truths();
}
