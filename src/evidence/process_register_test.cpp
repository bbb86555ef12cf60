#include "evidence/process_register.h"

#include <unistd.h>

#include "evidence/testing/evidence_fixture.h"

namespace assay::evidence {
namespace {

using ::testing::Contains;
using ::testing::Field;

class ProcessRegisterTest : public ::testing::Test {
 protected:
  static model::Process process(uint32_t id, pid_t pid, const std::string& exe) {
    model::Process out;
    out.id = {id};
    out.pid = pid;
    out.exe = exe;
    return out;
  }
  size_t facts_of(uint32_t id) const {
    size_t count = 0;
    for (const model::Fact& fact : sink_.facts)
      count += fact.scope == fmt::format("process {}", id);
    return count;
  }

  os::ProcFs proc_;  // the real one: programs are read from their files
  testing::FakeSink sink_;
  ProcessRegister register_{proc_, sink_};
};

TEST_F(ProcessRegisterTest, ALivingProcessGetsTheBuildIdOfItsProgram) {
  std::string exe = *proc_.exe(getpid());
  register_.put_process(process(0, getpid(), exe));
  ASSERT_EQ(sink_.processes.size(), 1u);
  std::string id = sink_.processes[0].build_id;
  EXPECT_EQ(id.size(), 40u) << "a SHA-1 in hexadecimal: " << id;
  model::Process ended = process(0, getpid(), exe);
  ended.end_ns = 5;
  register_.put_process(ended);
  EXPECT_EQ(sink_.processes[1].build_id, id) << "it is kept though the program cannot be asked now";
}

TEST_F(ProcessRegisterTest, OneThatHasNoProgramYetHasNoBuildId) {
  register_.put_process(process(0, getpid(), ""));
  EXPECT_EQ(sink_.processes[0].build_id, "");
}

TEST_F(ProcessRegisterTest, FactsOfAProcessAreReadOnceAndByWhoeverWritesThem) {
  std::string exe = *proc_.exe(getpid());
  register_.write_host_facts();
  EXPECT_THAT(sink_.facts, Contains(Field(&model::Fact::scope, "host")));
  register_.put_process(process(0, getpid(), exe));
  EXPECT_EQ(facts_of(0), 0u) << "the consumer does not wait for them";
  register_.write_new_facts();
  size_t count = facts_of(0);
  EXPECT_GT(count, 0u);
  register_.put_process(process(0, getpid(), exe));  // it was renamed, say
  register_.write_new_facts();
  EXPECT_EQ(facts_of(0), count);
}

TEST_F(ProcessRegisterTest, TheHundredthWorkerTellsNothingNew) {
  for (uint32_t id = 0; id < 100; ++id) register_.put_process(process(id, getpid(), "/bin/x"));
  register_.write_new_facts();
  EXPECT_GT(facts_of(63), 0u);
  EXPECT_EQ(facts_of(64), 0u);
  register_.put_process(process(100, getpid(), "/bin/x"));
  register_.write_new_facts();
  EXPECT_EQ(facts_of(100), 0u);
}

TEST_F(ProcessRegisterTest, ProcessesMayAppearWhileFactsAreWritten) {
  std::jthread consumer([this] {
    for (uint32_t id = 0; id < 50; ++id) register_.put_process(process(id, getpid(), "/bin/x"));
  });
  for (int round = 0; round < 20; ++round) register_.write_new_facts();
  consumer.join();
  register_.write_new_facts();
  for (uint32_t id = 0; id < 50; ++id) EXPECT_GT(facts_of(id), 0u) << id;
}

}  // namespace
}  // namespace assay::evidence
