// The rooms of src/ include one another in one direction only; this test is the rule.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

// Room → rooms it may include besides itself. A room that is not listed may not exist.
const std::map<std::string, std::set<std::string>> kMayInclude{
    {"base", {}},
    {"model", {"base"}},
    {"os", {"base"}},
    {"target", {"base", "model", "os"}},
    {"capture", {"base", "model", "os"}},
    {"unwind", {"base", "model", "os"}},
    {"symbol", {"base", "model", "os"}},
    {"run", {"base", "model"}},
    {"analysis", {"base", "model", "run"}},
    {"report", {"base", "model", "run", "analysis"}},
    {"formats", {"base", "model", "run", "analysis"}},
    {"load", {"base", "model", "os"}},
    {"view", {"base", "model", "run", "analysis", "report", "formats"}},
    {"session",
     {"base", "model", "os", "target", "capture", "unwind", "symbol", "run", "load", "formats"}},
    {"cli",
     {"base", "model", "os", "target", "run", "analysis", "report", "session", "symbol", "formats",
      "load", "view"}},
};

// "model" of `#include "model/stack.h"`; empty when the line includes no room.
std::string included_room(const std::string& line) {
  size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return "";
  size_t open = line.find('"');
  size_t slash = line.find('/', open == std::string::npos ? 0 : open);
  if (line.find("include") == std::string::npos || open == std::string::npos ||
      slash == std::string::npos)
    return "";
  return line.substr(open + 1, slash - open - 1);
}

std::string violation(const fs::path& file, const std::string& room, const std::string& line) {
  std::string other = included_room(line);
  if (other.empty() || other == room || kMayInclude.at(room).contains(other)) return "";
  // The layout of the channel to a sampler is the one thing shared with what runs inside targets.
  bool is_channel = line.find("inject/preload/heap_channel.h") != std::string::npos;
  if (is_channel && file.string().starts_with("capture/heap/")) return "";
  return file.string() + " (room " + room + ") must not include " + other + "/: " + line;
}

TEST(Architecture, RoomsIncludeOnlyWhatTheyMay) {
  fs::path src = fs::path(SOURCE_ROOT) / "src";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(src)) {
    fs::path path = entry.path();
    if (path.extension() != ".h" && path.extension() != ".cpp") continue;
    fs::path relative = fs::relative(path, src);
    if (relative == "main.cpp") continue;
    std::string room = *relative.begin();
    ASSERT_TRUE(kMayInclude.contains(room))
        << "unknown room " << room << ": add it to the rules here";
    ++files;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      EXPECT_EQ(violation(relative, room, line), "");
    }
  }
  EXPECT_GT(files, 20);
}

TEST(Architecture, TheRuleCatchesAForbiddenInclude) {
  EXPECT_NE(violation("x.cpp", "unwind", "#include \"symbol/symbolizer.h\""), "");
  EXPECT_NE(violation("x.cpp", "report", "#include \"cli/cli.h\""), "");
  EXPECT_EQ(violation("x.cpp", "unwind", "#include \"model/stack.h\""), "");
  std::string channel = "#include \"inject/preload/heap_channel.h\"";
  EXPECT_EQ(violation("capture/heap/x.cpp", "capture", channel), "");
  EXPECT_NE(violation("capture/perf/x.cpp", "capture", channel), "");
  EXPECT_NE(violation("session/x.cpp", "session", channel), "");
}

}  // namespace
