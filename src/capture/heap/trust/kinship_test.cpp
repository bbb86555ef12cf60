// Which processes a target may name as its children: its descendants that have no more rights than
// it.
#include "capture/heap/trust/kinship.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fake_tree.h"

namespace assay::capture {
namespace {

// A forked child that waits, until the test ends.
class Child {
 public:
  template <class Begin>
  explicit Child(const Begin& begin) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      char ready = begin() ? 1 : 0;
      if (::write(ends[1], &ready, 1) != 1) ::_exit(1);
      ::pause();
      ::_exit(0);
    }
    ::close(ends[1]);
    char ready = 0;
    began_ = ::read(ends[0], &ready, 1) == 1 && ready == 1;
    ::close(ends[0]);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  bool began() const { return began_; }

 private:
  pid_t pid_ = 0;
  bool began_ = false;
};

ProcessFacts facts_of(pid_t pid) {
  auto facts = read_process_facts(os::ProcFs(), pid);
  EXPECT_TRUE(facts) << facts.error().text();
  return facts ? *facts : ProcessFacts{};
}

TEST(Kinship, AChildIsKnownAndAStrangerIsNot) {
  os::ProcFs proc;
  Child child([] { return true; }), other([] { return true; });
  ProcessFacts self = facts_of(::getpid()), of_child = facts_of(child.pid());
  EXPECT_TRUE(check_rights(self, of_child));
  EXPECT_TRUE(check_descent(proc, self, of_child, 0));
  EXPECT_TRUE(of_child.same_program(self));
  EXPECT_FALSE(check_descent(proc, facts_of(other.pid()), of_child, 0)) << "a brother's";
  EXPECT_FALSE(check_descent(proc, of_child, self, 0)) << "its own parent";
  auto first = read_process_facts(proc, 1);
  if (first && ::getpid() != 1) {
    EXPECT_FALSE(check_descent(proc, self, *first, 0));
  }
}

TEST(Kinship, AnotherProcessUnderTheSameNumberIsAnother) {
  os::ProcFs proc;
  Child child([] { return true; });
  ProcessFacts facts = facts_of(child.pid());
  EXPECT_TRUE(is_same_process(proc, facts));
  facts.start_ticks -= 1;
  EXPECT_FALSE(is_same_process(proc, facts));
}

TEST(Kinship, MoreRightsAreNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root to become another user";
  constexpr uid_t kNobody = 65534;
  auto drop = [] {
    return ::setresgid(kNobody, kNobody, kNobody) == 0 &&
           ::setresuid(kNobody, kNobody, kNobody) == 0;
  };
  Child weak(drop), root([] { return true; });
  ProcessFacts of_weak = facts_of(weak.pid()), of_root = facts_of(root.pid());
  EXPECT_TRUE(check_rights(of_root, of_weak)) << "a server of root's gives rights up";
  auto refused = check_rights(of_weak, of_root);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("another user"), std::string::npos);
  ProcessFacts able = of_weak;
  able.capabilities = uint64_t{1} << 21;
  EXPECT_FALSE(check_rights(of_weak, able)) << "a program with capabilities of its own";
}

TEST(Kinship, OtherNamespacesAreNotFollowed) {
  Child apart([] { return ::unshare(CLONE_NEWNS) == 0; });
  if (!apart.began()) GTEST_SKIP() << "skipped: needs root to make a namespace";
  auto refused = check_rights(facts_of(::getpid()), facts_of(apart.pid()));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("namespaces"), std::string::npos);
}

// A machine of processes that the test makes up.
class MadeUpKin : public ::testing::Test {
 protected:
  void add(pid_t pid, pid_t parent, uint64_t start_ticks, const std::string& more = "") {
    os::add_process(tree_, {.pid = pid, .parent = parent, .comm = "x", .start_ticks = start_ticks});
    tree_.write(fmt::format("{}/status", pid),
                fmt::format("Name:\tx\nUid:\t5\t6\t7\t7\nCapPrm:\t0000000000000400\n{}", more));
    for (const char* kind : {"user", "pid", "mnt"})
      tree_.link(fmt::format("{}/ns/{}", pid, kind), fmt::format("{}:[1]", kind));
    tree_.write(fmt::format("{}/maps", pid), "");
  }
  void map_channel(pid_t pid, uint64_t inode) {
    tree_.write(
        fmt::format("{}/maps", pid),
        fmt::format("1000-2000 rw-s 00000000 00:01 {} /memfd:assay-heap-channel (deleted)\n",
                    inode));
  }
  ProcessFacts facts(pid_t pid) {
    auto read = read_process_facts(proc_, pid);
    EXPECT_TRUE(read) << read.error().text();
    return read ? *read : ProcessFacts{};
  }
  bool descends(pid_t ancestor, pid_t other, uint64_t channel = 0) {
    return check_descent(proc_, facts(ancestor), facts(other), channel).has_value();
  }

  os::FakeTree tree_;
  os::ProcFs proc_{tree_.root()};
};

TEST_F(MadeUpKin, FactsAreReadFromWhatTheKernelShows) {
  add(100, 1, 50);
  ProcessFacts read = facts(100);
  EXPECT_EQ(read.users, (std::array<uid_t, 3>{5, 6, 7})) << "real, effective, saved";
  EXPECT_EQ(read.capabilities, 0x400u);
  EXPECT_EQ(read.start_ticks, 50u);
  EXPECT_EQ(read.namespaces[0], "user:[1]");
  EXPECT_EQ(read.program_inode, 0u);
  EXPECT_FALSE(read.same_program(read)) << "two unknown programs are not the same";
  tree_.write("100/status", "Name:\tx\nUid:\t5\t6\n");
  EXPECT_FALSE(read_process_facts(proc_, 100)) << "no capabilities, too few users";
  add(100, 1, 50);
  tree_.remove("100/ns/pid");
  auto hidden = read_process_facts(proc_, 100);
  ASSERT_FALSE(hidden);
  EXPECT_NE(hidden.error().remedy.find("sudo assay heap"), std::string::npos);
}

TEST_F(MadeUpKin, GrandchildrenDescendAndCirclesEnd) {
  add(100, 1, 50);
  add(101, 100, 60);
  add(102, 101, 70);
  EXPECT_TRUE(descends(100, 102));
  EXPECT_TRUE(descends(101, 102));
  EXPECT_FALSE(descends(102, 100)) << "it began earlier";
  add(200, 201, 80);
  add(201, 200, 80);
  EXPECT_FALSE(descends(100, 200)) << "parents in a circle";
}

// A daemon's parent is 1: only the memory that it inherited shows where it comes from.
TEST_F(MadeUpKin, AnOrphanIsKnownByTheMemoryThatItInherited) {
  add(100, 1, 50);
  add(300, 1, 60);
  EXPECT_FALSE(descends(100, 300, 9));
  map_channel(300, 9);
  EXPECT_TRUE(descends(100, 300, 9));
  EXPECT_FALSE(descends(100, 300, 8)) << "another target's";
  map_channel(300, 0);
  EXPECT_FALSE(descends(100, 300, 0)) << "no channel is no proof";
}

TEST_F(MadeUpKin, AParentsNumberThatAnotherProcessGotProvesNothing) {
  add(100, 1, 50);
  ProcessFacts ancestor = facts(100);
  add(100, 1, 55);  // the same number, another process
  add(101, 100, 60);
  EXPECT_FALSE(check_descent(proc_, ancestor, facts(101), 0));
}

TEST_F(MadeUpKin, RefusalsSayHowToNameTheProcessOneself) {
  add(100, 1, 50);
  add(101, 100, 60);
  tree_.link("101/ns/mnt", "mnt:[2]");
  auto refused = check_rights(facts(100), facts(101));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, "name it yourself: --pid 101");
}

}  // namespace
}  // namespace assay::capture
