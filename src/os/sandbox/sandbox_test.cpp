#include <atomic>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/sanitized.h"
#include "os/process/module_file.h"
#include "os/sandbox/channel.h"
#include "os/sandbox/child_process.h"
#include "os/sandbox/confine.h"
#include "os/sandbox/credentials.h"

namespace assay::os {
namespace {

constexpr uid_t kStranger = 65534;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/assay-sandbox-XXXXXX";
    path = ::mkdtemp(name);
    ::chmod(path.c_str(), 0755);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name, mode_t mode) const {
    std::string whole = path + "/" + name;
    std::ofstream(whole) << "text";
    ::chmod(whole.c_str(), mode);
    return whole;
  }
  std::string path;
};

TEST(Credentials, AreThoseOfTheProcess) {
  auto own = credentials_of(::getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->uid, ::geteuid());
  EXPECT_EQ(own->gid, ::getegid());
  EXPECT_FALSE(credentials_of(1 << 30));
}

TEST(ActAs, RootReadsOnlyWhatTheOtherUserMayRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root";
  Folder folder;
  std::string secret = folder.file("secret", 0600), open_to_all = folder.file("open", 0644);
  {
    ActAs stranger({kStranger, kStranger, {}});
    ASSERT_TRUE(stranger.holds());
    EXPECT_FALSE(UniqueFd(::open(secret.c_str(), O_RDONLY)).valid());
    EXPECT_TRUE(UniqueFd(::open(open_to_all.c_str(), O_RDONLY)).valid());
  }
  EXPECT_TRUE(UniqueFd(::open(secret.c_str(), O_RDONLY)).valid()) << "the own rights are back";
}

// A process of another user, with links to what it may not read.
TEST(OpenInRoot, ATargetCannotMakeRootReadItsSecrets) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root";
  Folder folder;
  std::string secret = folder.file("secret", 0600), link = folder.path + "/link.cpp";
  std::filesystem::create_symlink(secret, link);
  std::string source = folder.file("source.cpp", 0644);
  pid_t target = ::fork();
  if (target == 0) {
    if (::setgid(kStranger) != 0 || ::setuid(kStranger) != 0) ::_exit(1);
    for (;;) ::pause();
  }
  while (credentials_of(target).value_or(Credentials{}).uid != kStranger) ::usleep(1000);
  EXPECT_TRUE(open_in_root(target, source));
  EXPECT_FALSE(open_in_root(target, secret));
  EXPECT_FALSE(open_in_root(target, link));
  EXPECT_FALSE(open_on_host(target, link));
  EXPECT_TRUE(open_in_root(0, secret)) << "asked for by the caller";
  ::kill(target, SIGKILL);
  ::waitpid(target, nullptr, 0);
}

TEST(OpenInRoot, AFifoIsNotOpened) {
  Folder folder;
  std::string fifo = folder.path + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  auto opened = open_in_root(0, fifo);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().what.find("not a regular file"), std::string::npos);
  // Had a reader come, a writer that does not wait could open it now.
  EXPECT_LT(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK), 0);
}

TEST(Channel, CarriesBytesAndDescriptors) {
  auto ends = Channel::pair();
  ASSERT_TRUE(ends);
  Folder folder;
  UniqueFd file(::open(folder.file("x", 0644).c_str(), O_RDONLY));
  std::string large(5 << 20, 'x');
  std::thread sender([&] { EXPECT_TRUE(ends->first.send(large, {file.get()})); });
  auto got = ends->second.receive();
  sender.join();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->bytes, large);
  ASSERT_EQ(got->descriptors.size(), 1u);
  char text[5]{};
  EXPECT_EQ(::read(got->descriptors[0].get(), text, 4), 4);
  EXPECT_STREQ(text, "text");
}

TEST(Channel, ALengthThatIsNoneIsRefused) {
  auto ends = Channel::pair();
  uint64_t huge = UINT64_MAX;
  ASSERT_EQ(::write(ends->first.fd(), &huge, sizeof huge), 8);
  EXPECT_FALSE(ends->second.receive());
}

TEST(Channel, AWaitCanBeGivenUp) {
  auto ends = Channel::pair();
  int asked = 0;
  EXPECT_FALSE(ends->second.receive([&] { return ++asked > 1; }));
  EXPECT_EQ(asked, 2);
}

// Runs `attempt` in a confined process; true when it says that it was refused.
template <class Attempt>
bool is_refused(Attempt attempt) {
  pid_t child = ::fork();
  if (child == 0) {
    if (!confine({.heap_bytes = 256 << 20, .open_files = 32})) ::_exit(3);
    ::_exit(attempt() ? 7 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_NE(WEXITSTATUS(status), 3) << "it could not be confined";
  return WEXITSTATUS(status) == 7;
}

TEST(Confine, NothingCanBeOpenedStartedOrReached) {
  if (kSanitized) GTEST_SKIP() << "skipped: sanitizers need system calls of their own";
  Folder folder;
  std::string readable = folder.file("open", 0666);
  EXPECT_TRUE(is_refused([&] { return ::open(readable.c_str(), O_RDONLY) < 0; }));
  EXPECT_TRUE(is_refused([&] { return ::open(readable.c_str(), O_WRONLY | O_TRUNC) < 0; }));
  EXPECT_TRUE(is_refused([&] { return ::unlink(readable.c_str()) < 0; }));
  EXPECT_TRUE(is_refused([] { return ::socket(AF_INET, SOCK_STREAM, 0) < 0; }));
  EXPECT_TRUE(is_refused([] { return ::fork() < 0; }));
  EXPECT_TRUE(is_refused([] { return ::execl("/bin/true", "true", nullptr) < 0; }));
  EXPECT_TRUE(is_refused([] { return ::kill(::getppid(), 0) < 0; }));
  EXPECT_TRUE(is_refused([] { return ::syscall(SYS_ptrace, 0, 0, 0, 0) < 0; }));
  EXPECT_TRUE(is_refused([] {
    return ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
           MAP_FAILED;
  }));
  EXPECT_TRUE(is_refused([] {
    return ::mmap(nullptr, 1u << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
           MAP_FAILED;
  }));
  EXPECT_TRUE(std::filesystem::exists(readable));
}

TEST(Confine, ComputingGoesOn) {
  if (kSanitized) GTEST_SKIP() << "skipped: sanitizers need system calls of their own";
  EXPECT_TRUE(is_refused([] {  // here: it worked
    std::atomic<int> sum = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&sum] { sum += static_cast<int>(std::string(1 << 20, 'x').size()); });
    for (std::thread& thread : threads) thread.join();
    return sum == 4 << 20;
  }));
}

TEST(Confine, RootIsRootNoLonger) {
  if (::geteuid() != 0 || kSanitized) GTEST_SKIP() << "skipped: needs root, and no sanitizer";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  if (child == 0) {
    if (!confine({})) ::_exit(3);
    char go = 0;
    ::_exit(::read(ends[0], &go, 1) == 1 ? 0 : 1);
  }
  std::string status_path = "/proc/" + std::to_string(child) + "/status", text;
  for (int i = 0; i < 1000 && text.find("Seccomp:\t2") == std::string::npos; ++i) {
    ::usleep(1000);
    std::ifstream in(status_path);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  EXPECT_NE(text.find("Uid:\t65534\t65534\t65534\t65534"), std::string::npos) << text;
  EXPECT_NE(text.find("CapEff:\t0000000000000000"), std::string::npos);
  EXPECT_NE(text.find("CapPrm:\t0000000000000000"), std::string::npos);
  EXPECT_NE(text.find("NoNewPrivs:\t1"), std::string::npos);
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace assay::os
