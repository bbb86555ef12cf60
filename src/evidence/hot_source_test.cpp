#include "evidence/hot_source.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "evidence/testing/fake_sink.h"

namespace assay::evidence {
namespace {

namespace fs = std::filesystem;

// Names every frame by its address: line `address` of one file.
class LineSymbolizer final : public symbol::Symbolizer {
 public:
  explicit LineSymbolizer(std::string file) : file_(std::move(file)) {}
  void add_module(pid_t, const model::Mapping&, const model::Module&) override {}
  std::vector<model::Location> resolve(model::ModuleId, uint64_t address) override {
    return {{"f", "", file_, static_cast<uint32_t>(address), 0, false}};
  }
  std::vector<std::vector<model::Location>> resolve_all(std::span<const model::Frame>) override {
    return {};
  }
  std::string resolve_data(model::ModuleId, uint64_t) override { return ""; }
  symbol::ModuleStatus module_status(model::ModuleId) const override { return {}; }

 private:
  std::string file_;
};

class HotSourceTest : public ::testing::Test {
 protected:
  HotSourceTest() : dir_(fs::temp_directory_path() / ("hot-source-" + std::to_string(getpid()))) {
    fs::create_directories(dir_);
    std::ofstream out(dir_ / "server.cc");
    for (int i = 1; i <= 100; ++i) out << "line " << i << "\n";
  }
  ~HotSourceTest() override { fs::remove_all(dir_); }

  model::StackId push(model::StackId parent, uint64_t line) {
    return stacks_.push(parent, frames_.intern({{0}, line}));
  }

  // Which of the file's lines are kept.
  std::set<uint32_t> kept_lines() {
    std::string source = (dir_ / "server.cc").string();
    LineSymbolizer symbolizer(source);
    symbol::SourceText text;
    testing::FakeSink sink;
    hot_.write(frames_, stacks_, symbolizer, text, sink);
    std::set<uint32_t> lines;
    for (const auto& [at, line] : sink.source) {
      EXPECT_EQ(at.first, source);
      EXPECT_EQ(line, "line " + std::to_string(at.second));
      lines.insert(at.second);
    }
    return lines;
  }

  fs::path dir_;
  model::FrameTable frames_;
  model::StackTable stacks_;
  HotSource hot_;
};

TEST_F(HotSourceTest, KeepsLinesAroundWhatRanAndFewerAroundItsCaller) {
  model::StackId caller = push({}, 50);
  hot_.add_running(push(caller, 20), 1000);
  push(caller, 80);  // never ran
  EXPECT_EQ(kept_lines(), (std::set<uint32_t>{16, 17, 18, 19, 20, 21, 22, 23, 24, 49, 50, 51}));
}

TEST_F(HotSourceTest, KeepsWhereThreadsWaited) {
  hot_.add_waiting(push({}, 30), 1000);
  EXPECT_EQ(kept_lines(), (std::set<uint32_t>{29, 30, 31}));
}

TEST_F(HotSourceTest, TheFirstLineHasNothingBeforeIt) {
  hot_.add_waiting(push({}, 1), 1000);
  EXPECT_EQ(kept_lines(), (std::set<uint32_t>{1, 2}));
}

TEST_F(HotSourceTest, NothingRanNothingKept) {
  push({}, 20);
  EXPECT_TRUE(kept_lines().empty());
}

}  // namespace
}  // namespace assay::evidence
