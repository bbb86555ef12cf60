#include "target/target.h"

#include <gmock/gmock.h>

#include "os/fake_tree.h"
#include "target/describe.h"
#include "target/match.h"

namespace assay::target {
namespace {

using os::FakeProcess;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr pid_t kAssay = 900;

// A machine: init, a shell that started Assay, and whatever a test adds.
class ResolveTest : public testing::Test {
 protected:
  ResolveTest() {
    add({.pid = 1, .parent = 0, .comm = "systemd", .exe = "/usr/lib/systemd/systemd"});
    add({.pid = 800, .comm = "bash", .exe = "/usr/bin/bash"});
    add({.pid = kAssay, .parent = 800, .comm = "assay", .exe = "/usr/bin/assay"});
    tree_.link("self/ns/net", "net:[1]");
    tree_.write("self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\nbroken line - x\n");
  }
  void add(FakeProcess process) {
    process.start_ticks = 1000 + static_cast<uint64_t>(process.pid);
    os::add_process(tree_, process);
    tree_.link(std::to_string(process.pid) + "/ns/net", "net:[1]");
  }
  void listen(const std::string& directory, std::vector<std::pair<int, int>> ports_and_inodes) {
    std::string table = "header\n";
    for (auto [port, inode] : ports_and_inodes) {
      table +=
          fmt::format("0: 0100007F:{:04X} 00000000:0000 0A 0:0 00:0 0 1000 0 {} 1\n", port, inode);
    }
    tree_.write(directory + "/tcp", table);
  }
  void hold(pid_t pid, int fd, int inode) {
    tree_.link(fmt::format("{}/fd/{}", pid, fd), fmt::format("socket:[{}]", inode));
  }
  Result<ResolvedTarget> run(const TargetSpec& spec, std::vector<pid_t> excluded = {}) {
    return resolve(spec, os::ProcFs(tree_.root()), {.self = kAssay, .excluded = excluded});
  }
  std::string error(const TargetSpec& spec, std::vector<pid_t> excluded = {}) {
    auto found = run(spec, excluded);
    return found ? "found " + std::to_string(found->main().pid) : found.error().text();
  }
  std::vector<pid_t> pids(const TargetSpec& spec, std::vector<pid_t> excluded = {}) {
    auto found = run(spec, excluded);
    EXPECT_TRUE(found) << found.error().text();
    return found ? found->pids() : std::vector<pid_t>();
  }
  std::vector<std::string> roles(const TargetSpec& spec) {
    std::vector<std::string> names;
    auto found = run(spec);
    EXPECT_TRUE(found) << found.error().text();
    if (found) {
      for (const auto& process : found->processes) names.push_back(process.role);
    }
    return names;
  }
  void add_nginx() {
    add({.pid = 100, .comm = "nginx", .exe = "/usr/sbin/nginx", .cmdline = {"nginx: master"}});
    add({.pid = 102, .parent = 100, .comm = "nginx", .exe = "/usr/sbin/nginx"});
    add({.pid = 101, .parent = 100, .comm = "nginx", .exe = "/usr/sbin/nginx"});
    add({.pid = 103, .parent = 101, .comm = "gzip", .exe = "/bin/gzip"});
  }

  os::FakeTree tree_;
};

TEST_F(ResolveTest, ATreeByNameHasRoles) {
  add_nginx();
  auto found = run({.name = "nginx"});
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_THAT(found->pids(), ElementsAre(100, 101, 102, 103));
  EXPECT_THAT(roles({.name = "nginx"}), ElementsAre("main", "worker 0", "worker 1", "gzip"));
  EXPECT_EQ(found->main().cmdline, "nginx: master");
  EXPECT_EQ(found->root_count, 1u);
}

TEST_F(ResolveTest, ChildrenCanBeLeftOut) {
  add_nginx();
  EXPECT_THAT(pids({.name = "nginx", .include_children = false}), ElementsAre(100));
  EXPECT_THAT(pids({.pids = {101}}), ElementsAre(101, 103));
}

TEST_F(ResolveTest, ReportsThreadsWithTheirNames) {
  add({.pid = 50, .comm = "srv", .exe = "/srv", .threads = {{52, "io 1"}, {51, "io (2)"}}});
  auto found = run({.pids = {50}});
  ASSERT_TRUE(found);
  std::vector<std::string> names;
  for (const auto& thread : found->main().threads) names.push_back(thread.name);
  EXPECT_THAT(names, ElementsAre("srv", "io (2)", "io 1"));
}

TEST_F(ResolveTest, NameMatchesProgramAndCommButNeverArguments) {
  add({.pid = 50, .comm = "renamed", .exe = "/opt/a-server-with-a-long-name"});
  add({.pid = 60, .comm = "vim", .exe = "/usr/bin/vim", .cmdline = {"vim", "renamed"}});
  EXPECT_THAT(pids({.name = "renamed"}), ElementsAre(50));
  EXPECT_THAT(pids({.name = "a-server-with-a-long-name"}), ElementsAre(50));
}

TEST_F(ResolveTest, UnrelatedServersAreNamedWithTheCommandThatPicks) {
  add({.pid = 50, .parent = 800, .comm = "redis-server", .exe = "/usr/bin/redis-server"});
  add({.pid = 60, .parent = 800, .comm = "redis-server", .exe = "/usr/bin/redis-server"});
  std::string text = error({.name = "redis-server"});
  EXPECT_THAT(text, HasSubstr("pid 50"));
  EXPECT_THAT(text, HasSubstr("pid 60"));
  EXPECT_THAT(text, HasSubstr("/usr/bin/redis-server"));
  EXPECT_THAT(text, HasSubstr("assay record --pid 50"));
  EXPECT_THAT(pids({.pids = {60, 50, 60}}), ElementsAre(50, 60));
  EXPECT_THAT(roles({.pids = {50, 60}}), ElementsAre("worker 0", "worker 1"));
}

TEST_F(ResolveTest, SimilarNamesAreSuggested) {
  add({.pid = 50, .comm = "redis-server", .exe = "/usr/bin/redis-server"});
  EXPECT_THAT(error({.name = "redis-sever"}), HasSubstr("--name redis-server"));
  EXPECT_THAT(error({.name = "redis"}), HasSubstr("similar names run here: redis-server"));
  EXPECT_THAT(error({.name = "postgres"}), Not(HasSubstr("redis")));
}

TEST_F(ResolveTest, HostileNamesAreEscapedInErrors) {
  add({.pid = 50, .comm = "srv\x1b[2J1", .exe = "/x/srv\n1"});
  std::string text = error({.name = "srv"});
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("srv\\x1b[2J1"));
}

TEST_F(ResolveTest, NeverPicksAssayItsLaunchersShellsOrTheExcluded) {
  EXPECT_THAT(error({.name = "assay"}), HasSubstr("matches only"));
  EXPECT_THAT(error({.name = "bash"}), HasSubstr("--pid 800"));
  EXPECT_THAT(error({.name = "systemd"}), HasSubstr("matches only"));
  EXPECT_THAT(error({.pids = {kAssay}}), HasSubstr("Assay itself"));
  EXPECT_THAT(pids({.pids = {800}}), ElementsAre(800));  // its child Assay stays out

  add({.pid = 50, .comm = "srv", .exe = "/srv"});
  add({.pid = 60, .comm = "srv", .exe = "/srv"});
  add({.pid = 61, .parent = 60, .comm = "srv", .exe = "/srv"});
  EXPECT_THAT(pids({.name = "srv"}, {60}), ElementsAre(50));
}

TEST_F(ResolveTest, AServerThatAssayLaunchedKeepsItsChildren) {
  add({.pid = 950, .parent = kAssay, .comm = "srv", .exe = "/srv"});
  add({.pid = 951, .parent = 950, .comm = "srv", .exe = "/srv"});
  EXPECT_THAT(pids({.pids = {950}}), ElementsAre(950, 951));
}

TEST_F(ResolveTest, MatchesAProgramFileThroughLinksAndAfterRemoval) {
  tree_.write("bin/server-2", "x");
  tree_.link("bin/server", tree_.root() + "/bin/server-2");
  add({.pid = 50, .comm = "s", .exe = tree_.root() + "/bin/server-2"});
  add({.pid = 60, .comm = "t", .exe = "/gone/app (deleted)"});
  EXPECT_THAT(pids({.exe = tree_.root() + "/bin/server"}), ElementsAre(50));
  EXPECT_THAT(pids({.exe = tree_.root() + "/bin/../bin/./server-2"}), ElementsAre(50));
  EXPECT_THAT(pids({.exe = "/gone/app"}), ElementsAre(60));
  EXPECT_TRUE(run({.exe = "/gone/app"})->main().exe_deleted);
  EXPECT_EQ(run({.exe = "/gone/app"})->main().exe, "/gone/app");
  EXPECT_THAT(error({.exe = "/other/app"}), HasSubstr("assay record --pid 60"));
  EXPECT_THAT(error({.exe = "/nowhere"}), HasSubstr("no process runs /nowhere"));
}

TEST_F(ResolveTest, FindsWhoListens) {
  add_nginx();
  listen("self/net", {{8000, 77}, {9000, 78}});
  hold(100, 6, 77);
  hold(101, 6, 77);
  add({.pid = 50, .comm = "other", .exe = "/other"});
  hold(50, 3, 78);
  EXPECT_THAT(pids({.port = 8000}), ElementsAre(100, 101, 102, 103));
  std::string text = error({.port = 8001});
  EXPECT_THAT(text, HasSubstr("8000 (nginx, pid 100)"));
  EXPECT_THAT(text, HasSubstr("9000 (other, pid 50)"));
  EXPECT_THAT(error({.port = 70000}), HasSubstr("not a port"));
}

TEST_F(ResolveTest, ListenersOnOnePortWithOneProgramAreOneServer) {
  listen("self/net", {{8000, 77}, {8000, 78}});
  add({.pid = 50, .comm = "srv", .exe = "/srv"});
  add({.pid = 51, .comm = "srv", .exe = "/srv"});
  hold(50, 3, 77);
  hold(51, 3, 78);
  EXPECT_THAT(roles({.port = 8000}), ElementsAre("worker 0", "worker 1"));
  add({.pid = 52, .comm = "alien", .exe = "/alien"});
  hold(52, 3, 78);
  EXPECT_THAT(error({.port = 8000}), HasSubstr("2 servers"));
  EXPECT_THAT(error({.port = 8000}), HasSubstr(", port 8000"))
      << "candidates are known by their ports";
}

TEST_F(ResolveTest, LooksIntoOtherNetworkNamespacesWhenNobodyListensHere) {
  listen("self/net", {{9000, 70}});
  add({.pid = 50, .comm = "srv", .exe = "/srv"});
  tree_.link("50/ns/net", "net:[2]");
  listen("50/net", {{8000, 77}});
  hold(50, 3, 77);
  EXPECT_THAT(pids({.port = 8000}), ElementsAre(50));
  add({.pid = 51, .comm = "srv", .exe = "/srv"});
  tree_.link("51/ns/net", "net:[3]");
  listen("51/net", {{8000, 78}});
  hold(51, 3, 78);
  EXPECT_THAT(error({.port = 8000}), HasSubstr("2 servers"));  // two containers, two servers
}

TEST_F(ResolveTest, AServiceManagerThatHoldsTheSocketIsNotTheServer) {
  listen("self/net", {{8000, 77}});
  hold(1, 40, 77);
  // Assay is below systemd here, so give the manager a line of its own.
  add({.pid = 40, .parent = 0, .comm = "systemd", .exe = "/usr/lib/systemd/systemd"});
  hold(40, 41, 77);
  EXPECT_THAT(error({.port = 8000}), HasSubstr("not been started yet"));
  add({.pid = 50, .parent = 40, .comm = "srv", .exe = "/srv"});
  hold(50, 3, 77);
  EXPECT_THAT(pids({.port = 8000}), ElementsAre(50));
}

TEST_F(ResolveTest, AListenerNobodyMaySeeIsSaidToBeThere) {
  listen("self/net", {{8000, 77}});
  EXPECT_THAT(error({.port = 8000}), HasSubstr("port 8000 is listened on by a process"));
}

TEST_F(ResolveTest, MatchesCgroupsWithSubgroups) {
  add({.pid = 50, .comm = "a", .exe = "/a", .cgroup = "5:memory:/\n0::/web.slice/a.service\n"});
  add({.pid = 51, .comm = "b", .exe = "/b", .cgroup = "0::/web.slice/a.service/sub\n"});
  add({.pid = 52, .comm = "c", .exe = "/c", .cgroup = "0::/web.slice/a.service2\n"});
  add({.pid = 53, .comm = "d", .exe = "/d", .cgroup = "4:memory:/box/1\n1:cpu:/\n0::/\n"});
  add({.pid = 54, .comm = "sh", .exe = "/bin/sh", .cgroup = "0::/web.slice/a.service\n"});
  EXPECT_THAT(pids({.cgroup = "/web.slice/a.service"}), ElementsAre(50, 51));
  EXPECT_THAT(pids({.cgroup = "web.slice/a.service/"}), ElementsAre(50, 51));
  EXPECT_THAT(pids({.cgroup = "/sys/fs/cgroup/unified/web.slice/a.service"}), ElementsAre(50, 51));
  EXPECT_THAT(pids({.cgroup = "/sys/fs/cgroup/memory/box"}), ElementsAre(53));
  EXPECT_EQ(run({.cgroup = "box"})->main().cgroup, "/box/1");
  EXPECT_THAT(error({.cgroup = "/sys/fs/cgroup/unified/box"}),
              HasSubstr("no process is in cgroup /box"));
  EXPECT_THAT(error({.cgroup = "a.servic"}), HasSubstr("/web.slice/a.service"));
}

TEST_F(ResolveTest, DeadPidsThreadsZombiesAndKernelThreadsAreSaidToBeSo) {
  EXPECT_THAT(error({.pids = {4242}}), HasSubstr("there is no process 4242"));
  EXPECT_THAT(error({.pids = {-1}}), HasSubstr("there is no process -1"));
  add({.pid = 50, .comm = "srv", .exe = "/srv"});
  tree_.write("51/status", "Tgid:\t50\nPid:\t51\n");
  EXPECT_THAT(error({.pids = {51}}), HasSubstr("assay record --pid 50"));
  add({.pid = 2, .parent = 0, .comm = "kthreadd"});
  EXPECT_THAT(error({.pids = {2}}), HasSubstr("thread of the kernel"));
  add({.pid = 60, .parent = 50, .comm = "dead"});
  tree_.write("60/stat", "60 (dead) Z 50 1 1 0 -1 4 1 0 2 0 3 4 0 0 20 0 1 0 5 0\n");
  EXPECT_THAT(error({.pids = {60}}), HasSubstr("has ended"));
  EXPECT_THAT(error({.name = "kthreadd"}), HasSubstr("no process is named"));
}

TEST_F(ResolveTest, ExactlyOneKindOfTarget) {
  EXPECT_THAT(error({}), HasSubstr("no target"));
  EXPECT_THAT(error({.name = "a", .port = 5}), HasSubstr("more than one kind"));
}

TEST_F(ResolveTest, ParentLoopsDoNotHang) {
  add({.pid = 50, .parent = 51, .comm = "srv", .exe = "/srv"});
  add({.pid = 51, .parent = 50, .comm = "srv", .exe = "/srv"});
  EXPECT_FALSE(run({.name = "srv"}));
}

TEST(Describe, WritesTheTargetAsItIsTyped) {
  EXPECT_EQ(describe({.pids = {1, 2}}), "--pid 1 --pid 2");
  EXPECT_EQ(describe({.name = "my srv", .include_children = false}),
            "--name 'my srv' --no-children");
  EXPECT_EQ(describe({.command = {"./s", "a'b", ""}}), "-- ./s 'a'\\''b' ''");
}

TEST(MainCgroup, PrefersTheUnifiedHierarchy) {
  EXPECT_EQ(main_cgroup("4:memory:/m\n1:cpu,cpuacct:/c\n0::/u\n"), "/u");
  EXPECT_EQ(main_cgroup("4:memory:/m\n1:cpu,cpuacct:/c\n0::/\n"), "/c");
  EXPECT_EQ(main_cgroup("4:memory:/m\n0::/\n"), "/m");
  EXPECT_EQ(main_cgroup("garbage\n::\n1:x\n"), "/");
}

}  // namespace
}  // namespace assay::target
