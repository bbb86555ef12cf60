// --count threads that each do a little work every --period-ms and sleep otherwise.
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <pthread.h>

#include "truth.h"

namespace {

struct Shared {
  const truth::Deadline& deadline;
  int64_t period_ns;
};
struct Start {
  Shared* shared;
  long number;
};

void* live(void* argument) {
  std::unique_ptr<Start> start(static_cast<Start*>(argument));
  truth::Truth self("many-" + std::to_string(start->number));
  const Shared& shared = *start->shared;
  // Staggered, so that they do not all wake at once.
  int64_t next = truth::now_ns() + shared.period_ns * (start->number % 97) / 97;
  while (self.wait([&] { return shared.deadline.sleep_until(next); })) {
    truth::burn_cpu_ns(10'000);
    next += shared.period_ns;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {{"count", 2000}, {"period-ms", 40}});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  Shared shared{deadline, arguments["period-ms"] * 1'000'000};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes,
                            size_t{128} * 1024);  // thousands of default stacks need not fit
  std::vector<pthread_t> threads;
  for (long i = 1; i <= arguments["count"]; ++i) {
    pthread_t thread;
    auto start = std::make_unique<Start>(Start{&shared, i});
    int error = pthread_create(&thread, &attributes, live, start.get());
    if (error != 0) {
      std::fprintf(stderr, "many_threads: only %ld threads: %s\n", i - 1, std::strerror(error));
      break;
    }
    (void)start.release();  // the thread owns it now
    threads.push_back(thread);
  }
  deadline.wait_for_end(main_thread);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  truth::print_truths();
}
