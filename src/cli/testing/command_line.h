// CommandLine: whole commands of assay inside a test: words in, exit code and output out, with
// files in a directory of their own. For tests only.
//
// No capture may begin in a test: it would start this program anew to read the target's files, and
// so the tests, and their captures. Should one begin all the same, the new process ends at once.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/temporary_directory.h"
#include "cli/cli.h"

namespace assay::cli {

inline const bool kIsNoReader = [] {
  std::ifstream file("/proc/self/cmdline");
  std::string words{std::istreambuf_iterator<char>(file), {}};
  if (words.find("__reader") != std::string::npos) std::_Exit(1);
  return true;
}();

struct Said {
  int code = 0;
  std::string out, err;
};

inline Said assay(std::vector<std::string> words) {
  words.insert(words.begin(), "assay");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Said said;
  said.code = run(static_cast<int>(words.size()), arguments.data());
  said.out = ::testing::internal::GetCapturedStdout();
  said.err = ::testing::internal::GetCapturedStderr();
  return said;
}

class CommandLine : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_ / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // A run of `stacks` in folded form.
  std::string make_run(const std::string& name, const std::string& stacks,
                       const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{
        "import", write(name + ".folded", stacks), "-o", path(name), "--overwrite", "-q"};
    words.insert(words.end(), more.begin(), more.end());
    Said said = assay(words);
    EXPECT_EQ(said.code, 0) << said.err;
    return path(name);
  }
  // 30 samples in parse, 10 in the kernel.
  std::string usual_run(const std::string& name = "run.assay") {
    return make_run(name, "server;main;parse 30\nserver;main;read;vfs_read_[k] 10\n",
                    {"--freq", "1000", "--as", "cpu"});
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace assay::cli
