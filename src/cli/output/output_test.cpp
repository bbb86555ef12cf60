// What leaves assay by other ways than a report: a terminal, a browser, a directory of files, and
// source lines that come in.
#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/environment.h"
#include "base/unique_fd.h"
#include "cli/output/browser_page.h"
#include "cli/output/out_dir.h"
#include "cli/output/terminal.h"
#include "cli/source_files.h"
#include "cli/testing/command_line.h"
#include "run/reader.h"
#include "run/run_fixture.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

UniqueFd& master_end() {
  static UniqueFd kept;  // a terminal hangs up with its master
  return kept;
}

// A terminal that nothing shows: its other end.
UniqueFd open_terminal(int columns) {
  UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK));
  if (::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) return {};
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  ::ioctl(master.get(), TIOCSWINSZ, &size);
  UniqueFd slave(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  master_end() = std::move(master);
  return slave;
}

// What was written to the terminal that was opened last.
std::string shown_so_far() {
  std::string text;
  char piece[100];
  while (ssize_t size = ::read(master_end().get(), piece, sizeof piece)) {
    if (size < 0) break;
    text.append(piece, static_cast<size_t>(size));
  }
  return text;
}

TEST(Terminal, ColoursAreForTerminalsThatWantThem) {
  UniqueFd terminal = open_terminal(100);
  if (!terminal.valid()) GTEST_SKIP() << "skipped: no pseudo terminal can be made here";
  With term("TERM", "xterm"), no_colour("NO_COLOR", nullptr);
  EXPECT_TRUE(wants_colour(terminal.get()));
  {
    With refused("NO_COLOR", "1");
    EXPECT_FALSE(wants_colour(terminal.get()));
  }
  {
    With empty("NO_COLOR", "");
    EXPECT_TRUE(wants_colour(terminal.get())) << "an empty one says nothing";
  }
  With dumb("TERM", "dumb");
  EXPECT_FALSE(wants_colour(terminal.get()));
  UniqueFd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_FALSE(wants_colour(file.get()));
  EXPECT_EQ(terminal_width(terminal.get(), 80), 100);
  EXPECT_EQ(terminal_width(file.get(), 80), 80);
}

TEST(Terminal, AFullDiskIsNoticed) {
  FILE* full = ::fopen("/dev/full", "w");
  if (full == nullptr) GTEST_SKIP() << "skipped: there is no /dev/full here";
  EXPECT_FALSE(write_out(full, "text"));
  ::fclose(full);
}

TEST(Terminal, ProgressIsNotForFiles) {
  ::testing::internal::CaptureStderr();
  {
    ProgressLine line(true);
    line.show("12 s left");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Standard error is `fd` for the time of a test.
class StandardError {
 public:
  explicit StandardError(int fd) : before_(::dup(STDERR_FILENO)) { put(fd); }
  ~StandardError() { put(before_.get()); }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

 private:
  static void put(int fd) {
    ::fflush(stderr);
    ::dup2(fd, STDERR_FILENO);
  }
  UniqueFd before_;
};

TEST(Terminal, ProgressIsOneLineThatFitsAndGoesAway) {
  UniqueFd terminal = open_terminal(10);
  if (!terminal.valid()) GTEST_SKIP() << "skipped: no pseudo terminal can be made here";
  {
    StandardError error(terminal.get());
    ProgressLine line(true);
    line.show("größere Zahlen");
    line.clear();
    line.clear();
    ProgressLine(false).show("nothing");
  }
  EXPECT_EQ(shown_so_far(), "\r\033[Kgrößere Z\r\033[K") << "cut by characters, cleared once";
}

class BrowserPageTest : public CommandLine {};

// The secret in the address must not be seen in the arguments of the browser.
TEST_F(BrowserPageTest, TheBrowserGetsAPageAndNotTheAddress) {
  With folder("XDG_RUNTIME_DIR", path("").c_str());
  std::string program = write("browser", "#!/bin/sh\necho \"$1\" > \"$0.said\"\n");
  ::chmod(program.c_str(), 0700);
  BrowserPage page;
  auto opened = page.open(program, "http://127.0.0.1:1/?token=s3cret&x=<1>");
  ASSERT_TRUE(opened) << opened.error().text();
  std::string argument;
  for (int i = 0; i < 500 && !argument.ends_with('\n'); ++i, usleep(10'000))
    argument = read(program + ".said");
  ASSERT_THAT(argument, AllOf(HasSubstr("file://"), EndsWith("/open.html\n")));
  EXPECT_EQ(argument.find("s3cret"), std::string::npos);
  std::string file = argument.substr(7, argument.size() - 8);
  EXPECT_THAT(read(file), AllOf(HasSubstr("token=s3cret&amp;x=&lt;1&gt;"), HasSubstr("refresh")));
  struct stat folder_status {};
  ASSERT_EQ(::stat(std::filesystem::path(file).parent_path().c_str(), &folder_status), 0);
  EXPECT_EQ(folder_status.st_mode & 0077, 0u) << "other users cannot read it";
  page.remove();
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(BrowserPageTest, ABrowserThatIsNotThereIsSaid) {
  With folder("XDG_RUNTIME_DIR", path("").c_str());
  {
    BrowserPage page;
    auto opened = page.open("/nonexistent/browser", "http://127.0.0.1:1/");
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().what, HasSubstr("could not be started"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(path(""))) << "nothing is left behind";
}

class OutDirTest : public CommandLine {};

TEST_F(OutDirTest, HasTheFilesThatPeopleExpect) {
  std::string run = path("run.assay");
  run::write_fixture_run(run);
  auto reader = run::Reader::open(run);
  ASSERT_TRUE(reader) << reader.error().text();
  std::filesystem::create_directory(path("out"));
  auto paths = write_out_dir(**reader, run, path("out"));
  ASSERT_TRUE(paths) << paths.error().text();
  EXPECT_THAT(*paths, AllOf(Contains(EndsWith(".oncpu.folded")), Contains(EndsWith(".oncpu.svg")),
                            Contains(EndsWith(".offcpu.folded")), Contains(EndsWith(".offcpu.svg")),
                            Contains(EndsWith("/report.txt")), Contains(EndsWith("/report.json"))));
  for (const std::string& file : *paths) EXPECT_GT(std::filesystem::file_size(file), 0u) << file;
  EXPECT_THAT(read(path("out/report.txt")), HasSubstr("Thread time"));
  EXPECT_FALSE(write_out_dir(**reader, run, path("nowhere")));
}

class SourceFilesTest : public CommandLine {
 protected:
  void SetUp() override {
    auto opened = run::Reader::open(usual_run());
    ASSERT_TRUE(opened) << opened.error().text();
    reader_ = std::move(*opened);
  }
  std::unique_ptr<run::Reader> reader_;
};

// Paths in a run are hostile: files of this machine are read only when the user asks for it.
TEST_F(SourceFilesTest, AreReadOnlyWhenAskedFor) {
  std::string file = write("a.cpp", "one\ntwo\nthree\n");
  EXPECT_THAT(source_lines(*reader_, false)(file, 1, 3), IsEmpty());
  auto lines = source_lines(*reader_, true);
  EXPECT_THAT(lines(file, 2, 3), ElementsAre("two", "three"));
  EXPECT_THAT(lines(file, 3, 9), ElementsAre("three")) << "it ends there";
  EXPECT_THAT(lines(path("none.cpp"), 1, 2), IsEmpty());
}

TEST_F(SourceFilesTest, OnlyRegularFilesOfLimitedSizeAreRead) {
  auto lines = source_lines(*reader_, true);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(lines(path("pipe"), 1, 1), IsEmpty()) << "and it does not wait for a writer";
  EXPECT_THAT(lines("/dev/zero", 1, 1), IsEmpty());
  EXPECT_THAT(lines(path(""), 1, 1), IsEmpty());
  write("large.cpp", "first\n" + std::string(5 << 20, 'x'));
  EXPECT_THAT(lines(path("large.cpp"), 1, 1), IsEmpty());
  write("wide.cpp", std::string(1000, 'y') + "\n");
  EXPECT_THAT(lines(path("wide.cpp"), 1, 1), ElementsAre(std::string(400, 'y')));
}

}  // namespace
}  // namespace assay::cli
