#include "harness.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace assay::kernel_test {
namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    read_end = ends[0];
    write_end = ends[1];
  }
};

// ASSAY_TEST_BACKEND=perf|bpf: what `assay record` uses where a test does not ask for one.
std::vector<std::string> with_backend(std::vector<std::string> argv) {
  const char* backend = getenv("ASSAY_TEST_BACKEND");
  bool records = argv.size() > 1 && argv[0] == ASSAY_BINARY && argv[1] == "record";
  bool asks = std::ranges::find(argv, "--backend") != argv.end();
  if (backend != nullptr && records && !asks) argv.insert(argv.begin() + 2, {"--backend", backend});
  return argv;
}

pid_t spawn(const std::vector<std::string>& wanted, int out, int err) {
  std::vector<std::string> argv = with_backend(wanted);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  if (err >= 0) posix_spawn_file_actions_adddup2(&actions, err, 2);
  pid_t pid = -1;
  int failed = posix_spawnp(&pid, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot run " + argv[0] + ": " + strerror(failed));
  return pid;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Reads both pipes to their ends; false when the time is up first.
bool drain(int out, int err, std::chrono::steady_clock::time_point deadline, Finished& finished) {
  pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&finished.out, &finished.err};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    poll(fds, 2, static_cast<int>(left.count()));
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[65536];
      ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) texts[i]->append(buffer, static_cast<size_t>(got));
      if (got == 0) fds[i].fd = -1;
    }
  }
  return true;
}

}  // namespace

Finished run(const std::vector<std::string>& argv, int limit_s) {
  Pipe out, err;
  pid_t pid = spawn(argv, out.write_end, err.write_end);
  close(out.write_end);
  close(err.write_end);
  Finished finished;
  bool ended = drain(out.read_end, err.read_end,
                     std::chrono::steady_clock::now() + std::chrono::seconds(limit_s), finished);
  if (!ended) kill(pid, SIGKILL);
  finished.exit_code = exit_code_of(pid);
  if (!ended) finished.exit_code = 124;
  close(out.read_end);
  close(err.read_end);
  return finished;
}

Background::Background(const std::vector<std::string>& argv) {
  Pipe out;
  pid_ = spawn(argv, out.write_end, -1);
  close(out.write_end);
  out_ = out.read_end;
}

Background::~Background() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    exit_code_of(pid_);
  }
  close(out_);
}

std::string Background::read_line() {
  std::string line;
  char c = 0;
  while (read(out_, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

void Background::signal(int number) const {
  kill(pid_, number);
}

Finished Background::wait() {
  Finished finished;
  char buffer[65536];
  ssize_t got = 0;
  while ((got = read(out_, buffer, sizeof buffer)) > 0)
    finished.out.append(buffer, static_cast<size_t>(got));
  finished.exit_code = exit_code_of(pid_);
  pid_ = -1;
  return finished;
}

std::string assay() {
  return ASSAY_BINARY;
}
std::string program(const std::string& name) {
  return std::string(PROGRAMS_DIR) + "/prog_" + name;
}

std::string run_file(const std::string& name) {
  std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("assay-kernel-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  std::filesystem::path path = directory / (name + ".assay");
  std::filesystem::remove(path);
  return path;
}

std::vector<nlohmann::json> sql(const std::string& run_path, const std::string& query) {
  Finished finished = run({assay(), "sql", run_path, "--json", query});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  std::vector<nlohmann::json> rows;
  std::istringstream lines(finished.out);
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

nlohmann::json report(const std::string& run_path) {
  Finished finished = run({assay(), "report", run_path, "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return nlohmann::json::parse(finished.out);
}

std::vector<Truth> parse_truths(const std::string& out) {
  std::vector<Truth> truths;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("wall_ns")) continue;
    truths.push_back({json["pid"], json["tid"], json["name"], json["begin_ns"], json["wall_ns"],
                      json["cpu_ns"], json["wait_ns"], json["waits"], json.value("queued_ns", int64_t{0})});
  }
  return truths;
}

Census census(const std::string& run_path, const std::vector<Truth>& truths) {
  std::set<std::pair<pid_t, pid_t>> in_run;
  for (const auto& row :
       sql(run_path, "SELECT p.pid, t.tid FROM thread t JOIN process p ON p.id = t.process")) {
    in_run.emplace(row["pid"], row["tid"]);
  }
  Census out;
  out.told = truths.size();
  for (const Truth& truth : truths) out.missing += !in_run.contains({truth.pid, truth.tid});
  nlohmann::json quality = report(run_path)["quality"];
  out.lost = quality["lost"];
  out.untracked = quality["lost_by_kind"]["untracked_threads"];
  out.said = out.lost + out.untracked > 0 && !quality["limits"].empty();
  return out;
}

std::string why_skipped() {
  if (geteuid() != 0) return "skipped: needs root (perf_event_paranoid, other threads' schedstat)";
  Finished tried = run(
      {assay(), "record", "-q", "-o", run_file("probe"), "--for", "200ms", "--", "sleep", "0.1"});
  return tried.exit_code == 0 ? "" : "skipped: no capture is possible here: " + tried.err;
}

std::string why_not_attached() {
  return geteuid() == 0 ? "" : "skipped: needs root, to attach to another process";
}

}  // namespace assay::kernel_test
