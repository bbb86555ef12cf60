#include "symbol/symbolizer.h"

#include <fstream>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <time.h>

#include "model/stack.h"

extern "C" __attribute__((noinline)) int assay_test_function(int x) {
  asm volatile("");
  return x + 1;
}
int assay_test_object[16] = {1};
int assay_test_zeroed[16];

namespace assay::symbol {
namespace {

// Announces what this process has mapped, as a capture would, and turns pointers into frames.
class OwnProcess {
 public:
  explicit OwnProcess(Symbolizer& symbolizer) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      uint64_t start, end, offset, inode;
      char perms[5], dev[16];
      int path_at = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %15s %lu %n", &start, &end, perms, &offset,
                      dev, &inode, &path_at) < 6) {
        continue;
      }
      std::string path = line.substr(static_cast<size_t>(path_at));
      if (perms[2] != 'x' || path.empty()) continue;
      auto kind = path == "[vdso]" ? model::ModuleKind::vdso : model::ModuleKind::elf;
      if (path[0] == '[' && kind == model::ModuleKind::elf) continue;
      model::Mapping mapping{start, end, offset, modules.intern(kind, path, "")};
      space.map(mapping);
      symbolizer.add_module(::getpid(), mapping, modules[mapping.module]);
    }
  }
  model::Frame frame(const void* pointer) const {
    auto address = reinterpret_cast<uint64_t>(pointer);
    const model::Mapping* mapping = space.find(address);
    if (mapping == nullptr) return {};
    return {mapping->module, mapping->to_module_address(address)};
  }

  model::ModuleTable modules;
  model::AddressSpace space;
};

std::string name_of(Symbolizer& symbolizer, model::Frame frame) {
  auto locations = symbolizer.resolve(frame.module, frame.address);
  return locations.empty() ? "" : locations.back().function;
}

TEST(Symbolizer, NamesFunctionsOfTheOwnProcess) {
  auto symbolizer = Symbolizer::create({});
  OwnProcess own(*symbolizer);
  auto at = reinterpret_cast<const char*>(&assay_test_function);
  EXPECT_EQ(name_of(*symbolizer, own.frame(at)), "assay_test_function");
  EXPECT_EQ(name_of(*symbolizer, own.frame(at + 3)), "assay_test_function");
  // By the address of a libc function, not of our stub for it.
  void* malloc_at = ::dlsym(RTLD_DEFAULT, "malloc");
  EXPECT_EQ(name_of(*symbolizer, own.frame(static_cast<char*>(malloc_at) + 1)), "malloc");
  void* write_at = ::dlsym(RTLD_DEFAULT, "write");
  EXPECT_EQ(name_of(*symbolizer, own.frame(static_cast<char*>(write_at) + 1)), "write");
}

TEST(Symbolizer, NamesTheVdso) {
  auto symbolizer = Symbolizer::create({});
  OwnProcess own(*symbolizer);
  void* vdso = ::dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (vdso == nullptr) GTEST_SKIP() << "skipped: the loader shows no vdso here";
  void* clock = ::dlvsym(vdso, "__vdso_clock_gettime", "LINUX_2.6");
  if (clock == nullptr) GTEST_SKIP() << "skipped: no vdso clock here";
  std::string name = name_of(*symbolizer, own.frame(static_cast<char*>(clock) + 1));
  EXPECT_NE(name.find("clock_gettime"), std::string::npos) << name;
}

TEST(Symbolizer, NamesDataByItsDistanceFromCode) {
  auto symbolizer = Symbolizer::create({});
  OwnProcess own(*symbolizer);
  auto code = reinterpret_cast<uint64_t>(&assay_test_function);
  model::Frame frame = own.frame(reinterpret_cast<const void*>(code));
  auto data = [&](const void* at) {
    return symbolizer->resolve_data(frame.module,
                                    frame.address + (reinterpret_cast<uint64_t>(at) - code));
  };
  EXPECT_EQ(data(&assay_test_object), "assay_test_object");
  EXPECT_EQ(data(&assay_test_object[4]), "assay_test_object+0x10");
  EXPECT_EQ(data(&assay_test_zeroed[1]), "assay_test_zeroed+0x4");
  EXPECT_EQ(data(reinterpret_cast<const void*>(code)), "");
}

TEST(Symbolizer, MarkersSayHowAStackEnded) {
  auto symbolizer = Symbolizer::create({});
  model::Module marker{model::ModuleId{3}, model::ModuleKind::marker, "[assay]", ""};
  symbolizer->add_module(0, {}, marker);
  auto locations =
      symbolizer->resolve(marker.id, static_cast<uint64_t>(model::StackEnd::copy_too_short));
  ASSERT_EQ(locations.size(), 1u);
  EXPECT_EQ(locations[0].function, model::stack_end_text(model::StackEnd::copy_too_short));
}

TEST(Symbolizer, AFileThatIsGoneYieldsOffsetsAndAReason) {
  auto symbolizer = Symbolizer::create({});
  model::Module gone{model::ModuleId{1}, model::ModuleKind::elf, "/nonexistent/libgone.so", "aa"};
  symbolizer->add_module(0, {}, gone);
  EXPECT_EQ(name_of(*symbolizer, {gone.id, 0x1234}), "libgone.so+0x1234");
  ModuleStatus status = symbolizer->module_status(gone.id);
  EXPECT_FALSE(status.opened);
  EXPECT_NE(status.problem, "");
  EXPECT_NE(symbolizer->module_status(model::ModuleId{99}).problem, "");
  EXPECT_TRUE(symbolizer->resolve(model::ModuleId{99}, 1).empty());
}

TEST(Symbolizer, StrippedFunctionsAreNamedByTheirUnwindRange) {
  model::Module redis{model::ModuleId{0}, model::ModuleKind::elf, "/usr/bin/redis-check-rdb", ""};
  auto symbolizer = Symbolizer::create({});
  symbolizer->add_module(0, {}, redis);
  if (!symbolizer->module_status(redis.id).opened)
    GTEST_SKIP() << "skipped: no stripped redis-server here";
  std::string name;
  uint64_t at = 0x100000;
  for (; at < 0x110000 && !name.contains("!fn_"); at += 64)
    name = name_of(*symbolizer, {redis.id, at});
  EXPECT_TRUE(name.starts_with("redis-check-rdb!fn_")) << name;
  EXPECT_EQ(name_of(*symbolizer, {redis.id, at - 64}), name);
}

}  // namespace
}  // namespace assay::symbol
