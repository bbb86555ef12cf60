// Of a stream and of packed bytes no more is read than is needed to tell what they are.
#include "formats/import/input.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/export/export_fixture.h"
#include "formats/gzip.h"

namespace assay::formats {
namespace {

std::string packed(const std::string& plain) {
  auto bytes = gzip(plain);
  EXPECT_TRUE(bytes);
  return *bytes;
}

// A named pipe; a thread writes 'x' into it, `total` times or until the reader is gone.
class Stream {
 public:
  explicit Stream(size_t total) : path_(scratch_.file("pipe")) {
    std::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    writer_ = std::jthread([this, total] {
      UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
      std::string block(1 << 16, 'x');
      while (written_ < total) {
        ssize_t done =
            ::write(fd.get(), block.data(), std::min(block.size(), total - written_.load()));
        if (done <= 0) return;
        written_ += static_cast<size_t>(done);
      }
    });
  }
  const std::string& path() const { return path_; }
  size_t written() {
    writer_.join();
    return written_;
  }

 private:
  run::ScratchDirectory scratch_;
  std::string path_;
  std::atomic<size_t> written_ = 0;
  std::jthread writer_;
};

TEST(Input, TheHeadOfABombIsShort) {
  Input input = Input::of_bytes("bomb", packed(std::string(100 << 20, 'x')));
  auto head = input.head();
  ASSERT_TRUE(head);
  EXPECT_GE(head->size(), Input::kHeadBytes);
  EXPECT_LE(head->size(), 3 * Input::kHeadBytes);
  auto loaded = input.load(10 << 20);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().what, "bomb: unpacks to more than 10485760 bytes");
}

TEST(Input, AHeadIsThereAlthoughTheRestIsDamaged) {
  std::string bytes = packed("main;work 10\n");
  Input cut = Input::of_bytes("cut", bytes.substr(0, bytes.size() - 4));
  auto head = cut.head();
  ASSERT_TRUE(head);
  EXPECT_EQ(*head, "main;work 10\n");
  auto loaded = cut.load();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().what.find("cut: gzip data ends early at offset"), std::string::npos);
  Input broken = Input::of_bytes("broken", "\x1f\x8b rubbish");
  EXPECT_NE(broken.head().error().what.find("broken: damaged gzip data at offset"),
            std::string::npos);
}

TEST(Input, OfAnEndlessStreamOnlyTheHeadIsRead) {
  Stream stream(SIZE_MAX);
  {
    auto input = Input::open(stream.path());
    ASSERT_TRUE(input);
    EXPECT_GE(input->head()->size(), Input::kHeadBytes);
  }
  EXPECT_LT(stream.written(), 2 * Input::kHeadBytes);
}

TEST(Input, AStreamIsLoadedWholeUpToItsLimit) {
  constexpr size_t kSize = 3 * Input::kHeadBytes + 5;
  {
    Stream stream(kSize);
    auto input = Input::open(stream.path());
    ASSERT_TRUE(input);
    ASSERT_TRUE(input->load());
    EXPECT_EQ(input->bytes().size(), kSize);
  }
  Stream stream(kSize);
  auto input = Input::open(stream.path());
  ASSERT_TRUE(input);
  auto loaded = input->load(2 * Input::kHeadBytes);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().what.find("more than the 2097152 bytes"), std::string::npos);
}

// Whoever may write to a file may also cut it, at any time.
TEST(Input, AFileThatIsCutMeanwhileIsReadAsFarAsItGoes) {
  run::ScratchDirectory scratch;
  std::string path = scratch.file("large"), text;
  constexpr size_t kSize = (size_t{50} << 20) + 7;
  for (size_t i = 0; text.size() < kSize; ++i) text += std::to_string(i) + "\n";
  text.resize(kSize);
  auto write = [&] { std::ofstream(path, std::ios::binary) << text; };
  write();
  auto input = Input::open(path);
  ASSERT_TRUE(input);
  EXPECT_EQ(input->head()->substr(0, 4), "0\n1\n");
  std::filesystem::resize_file(path, kSize / 2);
  ASSERT_TRUE(input->load());
  EXPECT_TRUE(input->bytes() == std::string_view(text).substr(0, kSize / 2));

  write();
  auto whole = Input::open(path);
  ASSERT_TRUE(whole && whole->load());
  std::filesystem::resize_file(path, 0);
  EXPECT_TRUE(whole->bytes() == text) << "what was read stays";
}

TEST(Input, WhatIsTooLargeForMemoryIsCopiedIntoAFileOfOurOwn) {
  run::ScratchDirectory scratch;
  std::string path = scratch.file("large"), text(size_t{5} << 20, 'x');
  text += "end";
  std::ofstream(path, std::ios::binary) << text;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  for (size_t in_memory : {size_t{1} << 20, size_t{1} << 30}) {
    auto copy = FileCopy::read(fd.get(), text.size(), in_memory);
    ASSERT_TRUE(copy) << copy.error().text();
    EXPECT_TRUE((*copy)->bytes() == text);
    auto more = FileCopy::read(fd.get(), 2 * text.size(), in_memory);
    ASSERT_TRUE(more);
    EXPECT_TRUE((*more)->bytes() == text) << "it is shorter than it was said to be";
  }
}

}  // namespace
}  // namespace assay::formats
