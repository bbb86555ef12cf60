#include "base/private_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace assay {
namespace {

namespace fs = std::filesystem;

class PrivateFiles : public ::testing::Test {
 protected:
  PrivateFiles() {
    std::string pattern = (fs::temp_directory_path() / "assay-private-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    before_ = ::umask(0);
  }
  ~PrivateFiles() override {
    ::umask(before_);
    fs::remove_all(folder_);
  }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  Result<void> put(const std::string& path, const std::string& text,
                   PrivateFile::Existing existing = PrivateFile::Existing::replace) {
    auto file = PrivateFile::create(path, existing);
    if (!file) return std::unexpected(file.error());
    if (auto done = file->write(text); !done) return done;
    return file->commit();
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  std::string folder_;
  mode_t before_;
};

TEST_F(PrivateFiles, AreForTheirOwnerAloneWhateverTheUmask) {
  ASSERT_TRUE(put(at("x"), "one"));
  EXPECT_EQ(mode_of(at("x")), 0600u);
  EXPECT_EQ(text_of(at("x")), "one");
  fs::permissions(at("x"), fs::perms(0666));
  ASSERT_TRUE(put(at("x"), "two"));
  EXPECT_EQ(mode_of(at("x")), 0600u) << "what was there before does not decide";
  auto made = PrivateFile::make_at(at("y"));
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(mode_of(at("y")), 0600u);
}

TEST_F(PrivateFiles, ReplaceNeitherLinksNorDirectoriesNorPipes) {
  std::ofstream(at("secret")) << "mine";
  fs::create_symlink(at("secret"), at("link"));
  fs::create_directory(at("folder"));
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "folder", "pipe"}) {
    auto done = put(at(name), "overwritten");
    ASSERT_FALSE(done) << name;
    EXPECT_NE(done.error().text().find(at(name)), std::string::npos);
    EXPECT_FALSE(PrivateFile::check_place(at(name)));
    EXPECT_FALSE(PrivateFile::make_at(at(name)));
  }
  EXPECT_EQ(text_of(at("secret")), "mine");
  EXPECT_EQ(files(), 4u) << "something was left behind";
}

// A link that somebody puts there between the look and the rename is replaced, not followed.
TEST_F(PrivateFiles, ALinkThatComesLaterIsNotFollowed) {
  std::ofstream(at("secret")) << "mine";
  auto file = PrivateFile::create(at("x"), PrivateFile::Existing::replace);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("text"));
  fs::create_symlink(at("secret"), at("x"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(text_of(at("secret")), "mine");
  EXPECT_FALSE(fs::is_symlink(at("x")));
}

TEST_F(PrivateFiles, WithoutCommitNothingIsLeft) {
  {
    auto file = PrivateFile::create(at("x"), PrivateFile::Existing::replace);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("text"));
  }
  EXPECT_EQ(files(), 0u);
  std::ofstream(at("x")) << "old";
  EXPECT_FALSE(put(at("x"), "new", PrivateFile::Existing::refuse));
  EXPECT_EQ(text_of(at("x")), "old");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace assay
