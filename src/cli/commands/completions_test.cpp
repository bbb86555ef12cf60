// The shells' completions offer what the options take.
#include <cstdio>
#include <regex>

#include <gmock/gmock.h>

#include "cli/testing/command_line.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string script(const std::string& shell) {
  Said said = assay({"completions", shell});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  return said.out;
}

TEST(Completions, ValuesAreOfTheOptionsKind) {
  std::string bash = script("bash"), zsh = script("zsh"), fish = script("fish");
  struct Case {
    const char* bash;
    const char* zsh;
    const char* fish;
  };
  for (const Case& one :
       {Case{"'record --pid') _assay_pids;",
             "'*--pid[Process id; several may be given]:value:_assay_pids'",
             "from record' -l pid -x -a '(__fish_complete_pids)'"},
        Case{"'record --name') _assay_names;", ":value:_assay_names'",
             "from record' -l name -x -a '(cat /proc/"},
        Case{"'record --port') _assay_ports;", ":value:_assay_ports'",
             "from record' -l port -x -a '(__assay_ports)'"},
        Case{"'record --freq') _assay_words '49 99 199 499 999';", ":value:(49 99 199 499 999)'",
             "from record' -l freq -x -a '49 99 199 499 999'"},
        Case{"'report --format') _assay_words 'text md json html';", ":value:(text md json html)'",
             "from report' -l format -x -a 'text md json html'"},
        Case{"'sweep -o') _assay_files -d;", ":value:_files -/'",
             "from sweep' -s o -l output -r -F"},
        Case{"'diff --vs') _assay_runs;", ":value:_files -g \"*.assay\"'",
             "from diff' -l vs -r -k -a '(__fish_complete_suffix .assay)'"},
        Case{"'record --exe') _assay_files -f;", "'*--exe[Program file]:value:_files'",
             "from record' -l exe -r -F"}}) {
    EXPECT_THAT(bash, HasSubstr(one.bash));
    EXPECT_THAT(zsh, HasSubstr(one.zsh));
    EXPECT_THAT(fish, HasSubstr(one.fish));
  }
}

TEST(Completions, ArgumentsAreRunsWhereRunsAreRead) {
  std::string bash = script("bash"), fish = script("fish");
  for (const char* command : {"report", "view", "sql", "diff", "export"}) {
    EXPECT_THAT(bash, HasSubstr(std::string("    ") + command + ") _assay_runs ;;")) << command;
    EXPECT_THAT(fish, HasSubstr(std::string("from ") + command + "' -k -a")) << command;
  }
  EXPECT_THAT(bash, HasSubstr("    import) _assay_files -f ;;"));
}

TEST(Completions, HiddenOptionsStayHidden) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(script(shell), AllOf(Not(HasSubstr("--report-to")), Not(HasSubstr("report-to"))))
        << "between the recorder and its load process";
}

TEST(Completions, FlagsTakeNoValue) {
  EXPECT_THAT(script("bash"), Not(HasSubstr("'record --quiet')")));
  EXPECT_THAT(script("zsh"), HasSubstr("'*--quiet[No progress and no report]'"));
}

// A description with a quote or a bracket would end the shell's word.
TEST(Completions, DescriptionsCannotBreakTheScript) {
  std::istringstream zsh(script("zsh"));
  for (std::string line; std::getline(zsh, line);) {
    if (line.find("            '*-") != 0) continue;
    EXPECT_EQ(std::ranges::count(line, '\''), 2) << line;
    EXPECT_EQ(std::ranges::count(line, '['), 1) << line;
  }
}

TEST(Completions, BashTakesTheScriptAndOffersCommands) {
  TemporaryDirectory directory;
  std::ofstream(directory / "assay.bash") << script("bash");
  std::string command = "bash --norc -c 'source " + (directory / "assay.bash") +
                        "; COMP_WORDS=(assay re); COMP_CWORD=1; _assay; echo \"${COMPREPLY[@]}\"'";
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char offered[200] = {};
  ASSERT_NE(::fgets(offered, sizeof offered, pipe), nullptr);
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_STREQ(offered, "record report\n");
}

}  // namespace
}  // namespace assay::cli
