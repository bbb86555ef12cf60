// Whom a target may name as its child: nobody but its children, and only those that may do no more.
#include "capture/heap/trust/kinship.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace
}  // namespace assay::capture
