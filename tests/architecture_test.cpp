// Rules that a compiler does not check: which room of src/ may include which, and how large folders, files and
// functions may be.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

// Room → rooms it may include besides itself. A room that is not listed may not exist.
const std::map<std::string, std::set<std::string>> kMayInclude{
    {"base", {}},
    {"model", {"base"}},
    {"elf", {"base"}},
    {"os", {"base", "elf"}},
    {"target", {"base", "model", "os"}},
    {"capture", {"base", "elf", "model", "os"}},
    {"unwind", {"base", "elf", "model", "os"}},
    {"symbol", {"base", "elf", "model", "os"}},
    {"run", {"base", "model"}},
    {"analysis", {"base", "model", "run"}},
    {"report", {"base", "model", "run", "analysis"}},
    {"formats", {"base", "model", "run", "analysis"}},
    {"load", {"base", "model", "os"}},
    {"view", {"base", "model", "run", "analysis", "report", "formats"}},
    {"reader", {"base", "model", "os", "symbol", "unwind"}},
    {"evidence", {"base", "model", "os", "capture", "unwind", "symbol"}},
    {"session",
     {"base", "model", "os", "target", "capture", "unwind", "symbol", "evidence", "reader", "run",
      "load", "formats"}},
    {"cli",
     {"base", "model", "target", "run", "analysis", "report", "session", "formats", "load",
      "view"}},
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

constexpr size_t kMostFilesInAFolder = 30;
constexpr size_t kMostLinesInAFile = 500;
constexpr size_t kMostLinesInAFunction = 60;

// Functions that are longer for a reason; at most three, none of them new.
const std::set<std::string> kLongFunctions{
    "src/symbol/demangle/itanium_expressions.cpp",  // one case for each operator of the grammar
    "src/elf/unit_entry.cpp",                       // one case for each form of DWARF
    "src/unwind/walker.cpp",  // one case for each kind of rule, in the hot loop
};

bool is_source(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cpp" || path.extension() == ".c";
}

std::vector<fs::path> sources_below(const std::string& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_ROOT) / folder)) {
    if (entry.is_regular_file() && is_source(entry.path())) found.push_back(entry.path());
  }
  return found;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Whether a function at namespace scope begins on this line. The house style does not indent inside
// namespaces, so its body ends at the next line that begins with a brace.
bool begins_function(const std::string& line) {
  if (line.empty() || line.front() == ' ' || line.front() == '}' || line.back() != '{')
    return false;
  for (const char* other :
       {"namespace", "class ", "struct ", "enum ", "union ", "extern ", "template"}) {
    if (line.starts_with(other)) return false;
  }
  return line.find('(') < line.find_first_of("={");
}

size_t longest_function(const std::vector<std::string>& lines) {
  size_t longest = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!begins_function(lines[i])) continue;
    size_t end = i;
    while (end < lines.size() && !lines[end].starts_with('}')) ++end;
    longest = std::max(longest, end - i);
    i = end;
  }
  return longest;
}

TEST(Architecture, FoldersFilesAndFunctionsStaySmall) {
  std::map<fs::path, size_t> in_folder;
  std::set<std::string> long_ones;
  for (const char* folder : {"src", "inject", "lab", "tests", "bench"}) {
    for (const fs::path& path : sources_below(folder)) {
      std::string name = fs::relative(path, SOURCE_ROOT).string();
      ++in_folder[path.parent_path()];
      std::vector<std::string> lines = lines_of(path);
      EXPECT_LE(lines.size(), kMostLinesInAFile) << name << ": look for a second concern";
      if (longest_function(lines) <= kMostLinesInAFunction) continue;
      EXPECT_TRUE(kLongFunctions.contains(name))
          << name << " has a function of " << longest_function(lines) << " lines";
      long_ones.insert(name);
    }
  }
  for (const auto& [folder, files] : in_folder) {
    EXPECT_LE(files, kMostFilesInAFolder) << folder << ": make folders in it";
  }
  EXPECT_EQ(long_ones, kLongFunctions) << "an exception that is not needed any more must go";
}

TEST(Architecture, LongFunctionsAreSeen) {
  std::vector<std::string> lines{"void f() {"};
  for (int i = 0; i < 70; ++i) lines.push_back("  call();");
  lines.push_back("}");
  EXPECT_EQ(longest_function(lines), 71u);
  lines.front() = "struct S {";
  EXPECT_EQ(longest_function(lines), 0u);
  lines.front() = "const std::map<int, int> kTable{f() = {";
  EXPECT_EQ(longest_function(lines), 0u);
}

}  // namespace
