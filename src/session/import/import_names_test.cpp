#include "session/import/import_names.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "run/run_fixture.h"

namespace assay::session {
namespace {

// A symbol of the running kernel; address 0 where addresses are hidden.
KernelPlace place_here() {
  std::ifstream kallsyms("/proc/kallsyms");
  std::string address, type;
  KernelPlace place;
  while (kallsyms >> address >> type >> place.symbol) {
    place.address = std::strtoull(address.c_str(), nullptr, 16);
    if (type == "T" && place.address != 0) return place;
    std::getline(kallsyms, address);
  }
  return {};
}

class ImportNamesTest : public testing::Test {
 protected:
  ImportNamesTest() {
    auto made = run::Writer::create(scratch_.file("run.assay"), {}, true);
    EXPECT_TRUE(made) << made.error().text();
    writer_ = std::move(*made);
    builder_.emplace(*writer_, [](const std::string& name) { return name; });
    kernel_ = builder_->module(model::ModuleKind::kernel, "[kernel]", "");
  }
  bool is_named(bool wanted, const std::vector<KernelPlace>& places, uint64_t address) {
    model::FrameId frame = builder_->frame({kernel_, address});
    ImportNames names(wanted, "");
    for (const KernelPlace& place : places) {
      names.set_kernel_place(place);
      names.name_ahead(*builder_);
    }
    names.name_frames(*builder_);
    return builder_->is_named(frame);
  }
  run::ScratchDirectory scratch_;
  std::unique_ptr<run::Writer> writer_;
  std::optional<formats::RunBuilder> builder_;
  model::ModuleId kernel_;
};

TEST_F(ImportNamesTest, OnlyTheKernelThatRunsHereIsNamed) {
  KernelPlace here = place_here();
  if (here.address == 0) GTEST_SKIP() << "skipped: the kernel's addresses are hidden here";
  KernelPlace elsewhere{here.symbol, here.address + 0x1000};
  EXPECT_FALSE(is_named(true, {}, here.address));
  EXPECT_FALSE(is_named(true, {elsewhere}, here.address));
  EXPECT_FALSE(is_named(true, {here, elsewhere}, here.address)) << "the last place counts";
  EXPECT_FALSE(is_named(false, {here}, here.address)) << "no names are wanted";
  EXPECT_TRUE(is_named(true, {elsewhere, here}, here.address));
}

// Whatever is named beside, and when, the run gets the same names in the same order.
TEST_F(ImportNamesTest, NamingAheadMakesNoDifference) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe");
  auto names_of = [&](const std::string& file, bool ahead) {
    auto writer = run::Writer::create(scratch_.file(file), {}, true);
    formats::RunBuilder builder(**writer, [](const std::string& name) { return name; });
    ImportNames names(true, "");
    model::ModuleId module = builder.module(model::ModuleKind::elf, self, "");
    model::ModuleId gone = builder.module(model::ModuleKind::elf, "/no/such/file", "");
    for (uint32_t i = 0; i < 400; ++i) {
      builder.frame({i % 7 == 0 ? gone : module, 0x1000 + (i * 7919) % 400 * 64});
      if (ahead && i % 50 == 0) names.name_ahead(builder);
    }
    names.name_frames(builder);
    EXPECT_TRUE(builder.finish({}));
    writer->reset();
    auto reader = run::Reader::open(scratch_.file(file));
    EXPECT_TRUE(reader);
    std::string text;
    for (const auto& locations : (*reader)->contents().locations) {
      for (const auto& at : locations) text += at.function + ' ';
      text += '\n';
    }
    for (const auto& note : (*reader)->contents().notes) text += note.text + '\n';
    return text;
  };
  std::string at_the_end = names_of("a.assay", false);
  EXPECT_NE(at_the_end.find("/no/such/file (58 addresses)"), std::string::npos) << at_the_end;
  EXPECT_EQ(names_of("b.assay", true), at_the_end);
}

}  // namespace
}  // namespace assay::session
