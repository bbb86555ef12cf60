#include "tests/inject_heap/run_program.h"

#include <cstdint>
#include <cstdlib>
#include <sstream>

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::inject {

namespace {

constexpr int kPatienceMs = 120'000;  // a loaded machine is slow; beyond this it hangs

[[noreturn]] void become(const std::vector<std::string>& argv,
                         const std::vector<std::string>& environment, int out) {
  dup2(out, 1);
  dup2(out, 2);
  for (const auto& one : environment) putenv(const_cast<char*>(one.c_str()));
  std::vector<char*> args;
  for (const auto& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  execvp(args[0], args.data());
  _exit(127);
}

}  // namespace

Finished run_program(const std::vector<std::string>& argv,
                     const std::vector<std::string>& environment) {
  Finished finished;
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return finished;
  pid_t child = fork();
  if (child == 0) {
    close(pipe_ends[0]);
    become(argv, environment, pipe_ends[1]);
  }
  close(pipe_ends[1]);
  char buffer[4096];
  pollfd readable{pipe_ends[0], POLLIN, 0};
  bool is_hung = false;
  for (;;) {
    if (poll(&readable, 1, kPatienceMs) == 0) {
      is_hung = true;
      kill(child, SIGKILL);
      break;
    }
    ssize_t got = read(pipe_ends[0], buffer, sizeof buffer);
    if (got <= 0) break;
    finished.out.append(buffer, static_cast<size_t>(got));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  finished.status = is_hung ? -1 : status;
  return finished;
}

std::vector<SiteTruth> sites_in(const std::string& out) {
  std::vector<SiteTruth> sites;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    SiteTruth site;
    if (words >> kind >> site.name >> site.begin >> site.end >> site.objects >> site.bytes >>
            site.live_objects >> site.live_bytes >> site.inverse >> site.live_inverse >>
            site.smallest >> site.largest &&
        kind == "site")
      sites.push_back(site);
  }
  return sites;
}

std::string test_folder() {
  std::string name = "/tmp/assay-inject-heap-XXXXXX";
  return mkdtemp(name.data()) ? name : "/tmp";
}

}  // namespace assay::inject
