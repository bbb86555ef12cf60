#include "capture/counters/other_processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "capture/counters/recording_sink.h"
#include "capture/counters/testing/target_sockets.h"
#include "os/fake_tree.h"

namespace assay::capture {
namespace {

using model::OtherUser;
using model::OtherUsers;
using model::ProcessId;
using model::Relation;
using os::TcpSocket;
using os::TcpState;

const int64_t kTicks = ::sysconf(_SC_CLK_TCK);
constexpr pid_t kAssay = 20;

struct Spent {  // in seconds of CPU time
  double own = 0, children = 0;
  uint64_t disk = 0;
  pid_t parent = 1;
  uint64_t start = 100;
  bool kernel = false;
};

// What is read when the objects under test are made.
struct HostTree : os::FakeTree {
  HostTree() {
    write("self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    link(fmt::format("{}/exe", kAssay), "/opt/assay");
  }
};

// A fake host: process 7 is the target and listens on port 8000, process 20 is Assay.
class FakeHost : public testing::Test {
 protected:
  FakeHost() {
    process(kTarget, "srv", {.own = 1});
    for (uint64_t inode : {1, 2, 3}) hold_socket(tree, kTarget, inode);
    process(kAssay, "assay", {.own = 1});
    sockets = {tcp(TcpState::listen, 8000, 0, 1), tcp(TcpState::established, 8000, 40'001, 2),
               tcp(TcpState::established, 40'001, 8000, 50),
               tcp(TcpState::established, 41'000, 6379, 3),
               tcp(TcpState::established, 6379, 41'000, 60)};
  }
  void process(pid_t pid, const std::string& comm, const Spent& spent,
               const std::string& cgroup = "/") {
    std::string home = std::to_string(pid) + "/";
    auto ticks = [](double seconds) { return static_cast<int64_t>(seconds * double(kTicks)); };
    tree.write(home + "stat",
               fmt::format("{} ({}) S {} 1 1 0 -1 {} 0 0 0 0 {} 0 {} 0 20 0 1 0 {} 1000 200 0 0\n",
                           pid, comm, spent.parent, spent.kernel ? 0x200000 : 0, ticks(spent.own),
                           ticks(spent.children), spent.start));
    tree.write(home + "io", fmt::format("rchar: 1\nwchar: 1\nread_bytes: 0\nwrite_bytes: {}\n"
                                        "cancelled_write_bytes: 0\n",
                                        spent.disk));
    tree.write(home + "cgroup", fmt::format("0::{}\n", cgroup));
    tree.directory("sys/fs/cgroup" + cgroup);
    tree.directory(home + "fd");
  }
  void hold(pid_t pid, int fd, const std::string& link) {
    tree.link(fmt::format("{}/fd/{}", pid, fd), link);
  }
  OtherUsers scan_at(double seconds) {
    now = static_cast<TimeNs>(seconds * 1e9);
    owners.poll(tasks);
    others.poll(tasks);
    return model::others_in(sink.facts());
  }
  static const OtherUser* find(const OtherUsers& users, const std::string& name) {
    for (const OtherUser& user : users.largest) {
      if (user.name == name) return &user;
    }
    return nullptr;
  }
  static Relation relation(const OtherUsers& users, const std::string& name) {
    const OtherUser* user = find(users, name);
    EXPECT_NE(user, nullptr) << name << " is not listed";
    return user ? user->relation : Relation::unknown;
  }

  HostTree tree;
  RecordingSink sink;
  std::atomic<uint32_t> next_id{0};
  SeriesBook book{sink, next_id};
  TimeNs now = 0;
  std::vector<TcpSocket> sockets;
  std::vector<os::UnixSocket> unix_sockets;
  LiveTasks tasks{{{ProcessId{1}, kTarget}}, {}};
  os::ProcFs proc{tree.root()};
  os::CgroupFs cgroups{tree.root(), tree.root()};
  SocketOwners owners{proc};
  SocketCounters counters{proc, owners, book, [this] { return now; },
                          [this](pid_t) -> Result<std::vector<TcpSocket>> { return sockets; }};
  OtherProcesses others{
      {proc, cgroups, owners, counters, sink, [this] { return now; },
       [this](pid_t) -> Result<std::vector<os::UnixSocket>> { return unix_sockets; }, kAssay}};
};

TEST_F(FakeHost, EachIsMarkedByWhatItHasToDoWithTheTarget) {
  for (pid_t pid : {30, 31, 32, 33, 34}) process(pid, fmt::format("p{}", pid), {.own = 5});
  process(35, "kworker/0:1", {.own = 5, .kernel = true});
  hold(30, 3, "socket:[50]");  // connected to port 8000
  hold(31, 3, "socket:[60]");  // the target connected to it
  hold(32, 3, "/dev/null");
  scan_at(10);
  for (pid_t pid : {30, 31, 32}) process(pid, fmt::format("p{}", pid), {.own = 10});
  process(33, "p33", {.own = 10, .parent = kTarget});
  process(35, "kworker/0:1", {.own = 10, .kernel = true});
  OtherUsers users = scan_at(20);
  EXPECT_EQ(relation(users, "p30"), Relation::load_generator);
  EXPECT_EQ(relation(users, "p31"), Relation::connected);
  EXPECT_EQ(relation(users, "p32"), Relation::stranger);
  EXPECT_EQ(relation(users, "p33"), Relation::connected) << "a child of the target";
  EXPECT_EQ(relation(users, "kworker/0:1"), Relation::kernel);
  EXPECT_EQ(find(users, "p34"), nullptr) << "it used nothing";
  EXPECT_NEAR(find(users, "p32")->cpus, 0.5, 0.01) << "5 s in 10 s; what was before does not count";
  EXPECT_NEAR(*users.cpus_of(Relation::load_generator), 0.5, 0.01);
  EXPECT_NEAR(*users.cpus_of(Relation::connected), 1.0, 0.01);
  EXPECT_NEAR(*users.cpus_of(Relation::stranger), 0.5, 0.01);
}

TEST_F(FakeHost, NeitherTheTargetNorAssayIsListed) {
  process(21, "assay", {.own = 0, .parent = kAssay});  // a reader
  tree.link("21/exe", "/opt/assay");
  process(22, "wrk", {.own = 0, .parent = kAssay});  // the load command
  tree.link("22/exe", "/usr/bin/wrk");
  scan_at(10);
  process(kTarget, "srv", {.own = 9});
  process(kAssay, "assay", {.own = 9});
  process(21, "assay", {.own = 9, .parent = kAssay});
  process(22, "wrk", {.own = 9, .parent = kAssay});
  OtherUsers users = scan_at(20);
  EXPECT_EQ(find(users, "srv"), nullptr);
  EXPECT_EQ(find(users, "assay"), nullptr);
  EXPECT_NE(find(users, "wrk"), nullptr);
  tasks.processes.clear();  // the target has ended and is a zombie
  EXPECT_EQ(find(scan_at(30), "srv"), nullptr) << "who was the target's stays so";
}

TEST_F(FakeHost, AProcessThatBecomesTheTargetsIsTakenOffTheList) {
  scan_at(10);
  process(40, "worker", {.own = 2, .parent = kTarget, .start = 2000});
  EXPECT_NE(find(scan_at(15), "worker"), nullptr);
  tasks.processes.push_back({ProcessId{2}, 40});
  EXPECT_EQ(find(scan_at(20), "worker"), nullptr);
}

TEST_F(FakeHost, OnlyTheOtherEndOfAPipeConnects) {
  // The rights of the link say which end it is; a fake tree cannot set them, so a link of its file
  // system has both.
  hold(kTarget, 6, "pipe:[77]");
  process(30, "logger", {.own = 1});
  hold(30, 0, "pipe:[77]");
  process(31, "other", {.own = 1});
  hold(31, 0, "pipe:[78]");
  scan_at(10);
  process(30, "logger", {.own = 2});
  process(31, "other", {.own = 2});
  OtherUsers users = scan_at(20);
  EXPECT_EQ(relation(users, "logger"), Relation::connected);
  EXPECT_EQ(relation(users, "other"), Relation::stranger);
}

TEST_F(FakeHost, AConnectionThatIsGoneStillCounts) {
  process(30, "wrk", {.own = 1});
  hold(30, 3, "socket:[50]");
  scan_at(10);
  process(30, "wrk", {.own = 2});
  scan_at(12);
  tree.remove("30/fd/3");
  sockets.clear();
  process(30, "wrk", {.own = 3});
  EXPECT_EQ(relation(scan_at(20), "wrk"), Relation::load_generator);
}

TEST_F(FakeHost, WhoEndsKeepsWhatWasSeenAndItsNumberIsAnothers) {
  process(30, "first", {.own = 1});
  scan_at(10);
  process(30, "first", {.own = 3});
  scan_at(15);
  process(30, "second", {.own = 1, .start = 5000});
  OtherUsers users = scan_at(20);
  EXPECT_NEAR(find(users, "first")->cpus, 0.2, 0.01);
  EXPECT_NEAR(find(users, "second")->cpus, 0.1, 0.01) << "all of it: it is new";
  tree.remove("30");
  EXPECT_NEAR(find(scan_at(20), "second")->cpus, 0.1, 0.01);
}

TEST_F(FakeHost, ChildrenThatNoScanSawAreTheirParents) {
  process(30, "make", {.own = 1, .children = 100});
  process(31, "cc1", {.own = 2, .parent = 30});
  scan_at(10);
  process(31, "cc1", {.own = 4, .parent = 30});
  process(30, "make", {.own = 1, .children = 100});
  scan_at(15);
  tree.remove("31");  // it had used 4.5 s when it ended, and another one 3 s that nobody saw
  process(30, "make", {.own = 1, .children = 107.5});
  OtherUsers users = scan_at(20);
  EXPECT_NEAR(find(users, "cc1")->cpus, 0.2, 0.01) << "2 s in 10 s, as seen";
  EXPECT_NEAR(find(users, "make")->cpus, 0.35, 0.01) << "3 s, and the last 0.5 s of the one seen";
}

// make, sh and cc1: sh learns of cc1 and ends at once, make learns of both.
TEST_F(FakeHost, GenerationsThatEndTogetherAreNotCountedTwice) {
  process(30, "make", {.own = 1});
  process(31, "sh", {.own = 0, .parent = 30});
  process(32, "cc1", {.own = 50, .parent = 31});
  scan_at(10);
  process(32, "cc1", {.own = 54, .parent = 31});
  scan_at(15);
  tree.remove("31");
  tree.remove("32");
  process(30, "make", {.own = 1, .children = 55});
  OtherUsers users = scan_at(20);
  EXPECT_NEAR(find(users, "cc1")->cpus, 0.4, 0.01);
  EXPECT_NEAR(find(users, "make")->cpus, 0.1, 0.01) << "the last second, which no scan saw";
}

TEST_F(FakeHost, ProcessesOfOneNameAndServiceAreOneUser) {
  std::string container(64, 'a');
  for (pid_t pid : {30, 31}) process(pid, "db", {.own = 0}, "/system.slice/db.service");
  process(32, "db", {.own = 0}, "/docker/" + container);
  scan_at(10);
  for (pid_t pid : {30, 31})
    process(pid, "db", {.own = pid - 28.0, .disk = 5'000'000}, "/system.slice/db.service");
  process(32, "db", {.own = 1}, "/docker/" + container);
  OtherUsers users = scan_at(20);
  ASSERT_EQ(users.largest.size(), 2u);
  EXPECT_EQ(users.largest[0].service, "db.service");
  EXPECT_EQ(users.largest[0].processes, 2u);
  EXPECT_EQ(users.largest[0].pid, 31) << "the one that used most";
  EXPECT_NEAR(users.largest[0].cpus, 0.5, 0.01);
  EXPECT_NEAR(*users.largest[0].disk_bytes_per_s, 1e6, 1e4);
  EXPECT_EQ(users.largest[1].service, "container aaaaaaaaaaaa");
}

TEST_F(FakeHost, PlacesThatAreNoLongerTakenAreEmptied) {
  process(30, "short", {.own = 0});
  process(31, "long", {.own = 0});
  scan_at(0);
  process(30, "short", {.own = 0.1});
  process(31, "long", {.own = 1});
  EXPECT_EQ(scan_at(1).largest.size(), 2u);
  process(31, "long", {.own = 900});
  OtherUsers users = scan_at(1000);
  ASSERT_EQ(users.largest.size(), 1u) << "0.1 s in 1000 s is nothing";
  EXPECT_EQ(users.largest[0].name, "long");
}

}  // namespace
}  // namespace assay::capture
