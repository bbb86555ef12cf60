#include "evidence/stacks/address_spaces.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/fake_tree.h"

namespace assay::evidence {
namespace {

struct Announced {
  pid_t pid;
  model::Mapping mapping;
  std::string path;
  bool is_new;
};

class AddressSpacesTest : public testing::Test {
 protected:
  os::ProcFs proc_;
  std::vector<Announced> announced_;
  AddressSpaces spaces_{proc_, [this](pid_t pid, const model::Mapping& mapping,
                                      const model::Module& module, bool is_new) {
                          announced_.push_back({pid, mapping, module.path, is_new});
                        }};

  static capture::MmapRecord record(uint64_t start, uint64_t length, uint64_t offset,
                                    std::string_view path, std::span<const uint8_t> build_id = {}) {
    capture::MmapRecord mmap;
    mmap.start = start;
    mmap.length = length;
    mmap.file_offset = offset;
    mmap.path = path;
    mmap.build_id = build_id;
    mmap.executable = true;
    return mmap;
  }
};

TEST_F(AddressSpacesTest, OurOwnCodeIsFoundInOurOwnProgram) {
  spaces_.load(getpid());
  auto address = reinterpret_cast<uint64_t>(&getpid);
  const model::Mapping* mapping = spaces_.find(getpid(), address, 1);
  ASSERT_NE(mapping, nullptr);
  const model::Module& module = spaces_.modules()[mapping->module];
  EXPECT_EQ(module.kind, model::ModuleKind::elf);
  EXPECT_FALSE(module.build_id.empty());
}

TEST_F(AddressSpacesTest, AModuleIsNewOnce) {
  const uint8_t id[] = {0xab, 0xcd};
  spaces_.mapped(7, record(0x1000, 0x1000, 0, "/lib/x.so", id));
  spaces_.mapped(8, record(0x5000, 0x1000, 0x200, "/lib/x.so", id));
  int news = 0;
  for (const Announced& entry : announced_) news += entry.path == "/lib/x.so" && entry.is_new;
  EXPECT_EQ(news, 1);
  EXPECT_EQ(spaces_.modules()[spaces_.find(7, 0x1800, 1)->module].build_id, "abcd");
  EXPECT_EQ(spaces_.find(8, 0x5010, 1)->to_module_address(0x5010), 0x210u);
}

TEST_F(AddressSpacesTest, MemoryWithoutAFileIsOfItsProcessAndAbsolute) {
  spaces_.mapped(7, record(0x9000, 0x1000, 0, "//anon"));
  const model::Mapping* mapping = spaces_.find(7, 0x9123, 1);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(mapping->to_module_address(0x9123), 0x9123u);
  EXPECT_EQ(spaces_.modules()[mapping->module].path, "[anon 7]");
}

TEST_F(AddressSpacesTest, AForkCopiesAnExecClears) {
  const uint8_t id[] = {1};
  spaces_.mapped(7, record(0x1000, 0x1000, 0, "/bin/a", id));
  spaces_.forked(7, 9);
  ASSERT_NE(spaces_.find(9, 0x1800, 1), nullptr);
  spaces_.executed(9);
  EXPECT_EQ(spaces_.of(9).find(0x1800), nullptr);
  EXPECT_NE(spaces_.of(7).find(0x1800), nullptr);
  spaces_.exited(7);
  EXPECT_FALSE(spaces_.knows(7));
}

TEST_F(AddressSpacesTest, DataAndEmptyMappingsAreNoCode) {
  capture::MmapRecord data = record(0x1000, 0x1000, 0, "/lib/x.so");
  data.executable = false;
  spaces_.mapped(7, data);
  spaces_.mapped(7, record(0x3000, 0, 0, "/lib/x.so"));
  EXPECT_TRUE(spaces_.of(7).all().empty());
}

TEST_F(AddressSpacesTest, EverythingThatIsNoFileIsOneModuleOfItsProcess) {
  uint64_t at = 0x1000;
  for (const char* path : {"", "//anon", "/dev/zero", "/memfd:jit (deleted)", "/SYSV00000000",
                           "[heap]", "[stack]", "[uprobes]"}) {
    spaces_.mapped(7, record(at, 0x1000, 0x77, path));
    const model::Mapping* mapping = spaces_.of(7).find(at);
    ASSERT_NE(mapping, nullptr) << path;
    EXPECT_EQ(spaces_.modules()[mapping->module].kind, model::ModuleKind::anonymous) << path;
    EXPECT_EQ(mapping->module, spaces_.unknown_memory(7)) << path;
    EXPECT_EQ(mapping->to_module_address(at + 1), at + 1) << path;
    at += 0x1000;
  }
  EXPECT_NE(spaces_.unknown_memory(7), spaces_.unknown_memory(8));
}

TEST_F(AddressSpacesTest, TheVdsoIsAModuleOfItsOwn) {
  spaces_.mapped(7, record(0x7000, 0x1000, 0x123, "[vdso]"));
  spaces_.mapped(8, record(0x9000, 0x1000, 0, "[vdso]"));
  const model::Mapping* mapping = spaces_.of(7).find(0x7010);
  EXPECT_EQ(spaces_.modules()[mapping->module].kind, model::ModuleKind::vdso);
  EXPECT_EQ(mapping->to_module_address(0x7010), 0x10u) << "whatever offset the kernel says";
  EXPECT_EQ(mapping->module, spaces_.of(8).find(0x9000)->module);
}

TEST_F(AddressSpacesTest, AForkedChildsFilesAreAnnouncedItsOwnMemoryIsNot) {
  const uint8_t id[] = {1};
  spaces_.mapped(7, record(0x1000, 0x1000, 0, "/bin/a", id));
  spaces_.mapped(7, record(0x9000, 0x1000, 0, "//anon"));
  announced_.clear();
  spaces_.forked(7, 9);
  ASSERT_EQ(announced_.size(), 1u);
  EXPECT_EQ(announced_[0].pid, 9);
  EXPECT_EQ(announced_[0].path, "/bin/a");
  EXPECT_FALSE(announced_[0].is_new);
  announced_.clear();
  spaces_.forked(7, 7);    // a thread
  spaces_.forked(55, 56);  // of a process that is not known
  EXPECT_TRUE(announced_.empty());
  EXPECT_FALSE(spaces_.knows(56));
}

TEST(AddressSpacesOfFakeProc, AnUnknownAddressIsLookedUpAgainButNotAllTheTime) {
  os::FakeTree tree;
  os::ProcFs proc(tree.root());
  AddressSpaces spaces(proc, [](pid_t, const model::Mapping&, const model::Module&, bool) {});
  tree.write("7/maps", "00001000-00002000 r-xp 00000000 00:00 0 \n");
  EXPECT_NE(spaces.find(7, 0x1800, kNsPerSecond), nullptr) << "read at the first miss";
  tree.write("7/maps",
             "00001000-00002000 r-xp 00000000 00:00 0 \n00005000-00006000 r-xp 00000000 00:00 0 \n"
             "00007000-00008000 rw-p 00000000 00:00 0 \n");
  EXPECT_EQ(spaces.find(7, 0x5800, kNsPerSecond + 1), nullptr) << "it was read just now";
  EXPECT_NE(spaces.find(7, 0x5800, 3 * kNsPerSecond), nullptr);
  EXPECT_EQ(spaces.find(7, 0x7800, 5 * kNsPerSecond), nullptr) << "data is no code";
  EXPECT_EQ(spaces.find(99, 0x1800, kNsPerSecond), nullptr) << "a process that cannot be read";
}

}  // namespace
}  // namespace assay::evidence
