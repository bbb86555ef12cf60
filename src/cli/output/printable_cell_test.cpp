#include "cli/output/printable_cell.h"

#include <gtest/gtest.h>

#include "cli/output/default_output.h"

namespace assay::cli {
namespace {

TEST(PrintableCell, ValuesAreWrittenByTheirKind) {
  EXPECT_EQ(cell_text(run::SqlValue{}), "");
  EXPECT_EQ(cell_text(run::SqlValue{int64_t{-7}}), "-7");
  EXPECT_EQ(cell_text(run::SqlValue{0.5}), "0.5");
  EXPECT_EQ(cell_text(run::SqlValue{std::vector<uint8_t>(3)}), "<3 bytes>");
}

TEST(PrintableCell, ANameCannotMoveTheCursor) {
  EXPECT_EQ(cell_text(run::SqlValue{std::string("a\x1b[2Jb\n\t\x7f")}),
            "a\\x1b[2Jb\\x0a\\x09\\x7f");
  EXPECT_EQ(cell_text(run::SqlValue{std::string("Größe")}), "Größe") << "letters stay";
}

TEST(PrintableCell, ACharacterTakesOneColumn) {
  EXPECT_EQ(display_width("Größe"), 5u);
  EXPECT_EQ(display_width(""), 0u);
}

TEST(DefaultOutput, ATargetBecomesAFileNameInThisDirectory) {
  std::string name = default_output("--cgroup ../../etc/passwd; rm *");
  EXPECT_EQ(name.find('/'), std::string::npos);
  EXPECT_EQ(name.find_first_of(" ;*"), std::string::npos);
  EXPECT_TRUE(name.starts_with("cgroup-..-..-etc-passwd-rm-")) << name;
  EXPECT_TRUE(name.ends_with(".assay"));
  EXPECT_TRUE(default_output("--port 8000").starts_with("port-8000-2")) << "then the date";
  EXPECT_TRUE(default_output("").starts_with("run-"));
  EXPECT_LT(default_output(std::string(500, 'x')).size(), 80u);
}

}  // namespace
}  // namespace assay::cli
