// What may be asked of an export: metrics that a format has, selections that match something.
#include <filesystem>

#include <gmock/gmock.h>

#include "formats/export_fixture.h"

namespace assay::formats {
namespace {

class ExportChoice : public ::testing::Test {
 protected:
  ExportChoice() { fill_server(server_); }

  Result<void> export_it(const ExportOptions& options) {
    return export_run(server_, options, scratch_.file("out"));
  }

  analysis::FakeRun server_;
  run::ScratchDirectory scratch_;
};

TEST_F(ExportChoice, ASelectionThatMatchesNothingIsAnErrorAndWritesNothing) {
  for (Format format : {Format::folded, Format::svg, Format::pprof, Format::speedscope}) {
    ExportOptions options;
    options.format = format;
    options.selection.focus = "no_such_function";
    auto done = export_it(options);
    ASSERT_FALSE(done) << format_name(format);
    EXPECT_THAT(done.error().what, ::testing::HasSubstr("nothing in the run matches"));
    EXPECT_FALSE(std::filesystem::exists(scratch_.file("out")));
    options.selection.focus = "memcpy";
    EXPECT_TRUE(export_it(options)) << format_name(format);
    std::filesystem::remove(scratch_.file("out"));
  }
}

TEST_F(ExportChoice, TablesAreSortedByTheMetric) {
  std::string cpu = exported(server_, Format::tsv),
              off = exported(server_, Format::tsv, Metric::off);
  auto first = [](const std::string& table) {
    size_t begin = table.find('\n') + 1;
    return table.substr(begin, table.find('\t', begin) - begin);
  };
  EXPECT_EQ(first(cpu), "memcpy");
  EXPECT_EQ(first(off), "futex_wait");
}

TEST_F(ExportChoice, AMetricThatAFormatDoesNotHoldIsRefused) {
  ExportOptions options;
  options.format = Format::csv;
  options.metric = Metric::lock;
  EXPECT_FALSE(export_it(options));
  options.format = Format::firefox;
  options.metric = Metric::off;
  EXPECT_FALSE(export_it(options));
  options.metric = Metric::cpu;
  EXPECT_TRUE(export_it(options));
}

}  // namespace
}  // namespace assay::formats
