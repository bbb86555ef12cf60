#include "session/import_names.h"

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
      names.expect_kernel(builder_->modules()[kernel_]);
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

}  // namespace
}  // namespace assay::session
