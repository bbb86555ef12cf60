#include "os/process/module_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/testing/temporary_directory.h"

namespace assay::os {
namespace {

namespace fs = std::filesystem;

class ModuleFileTest : public ::testing::Test {
 protected:
  TemporaryDirectory scratch_;
  fs::path dir_ = scratch_.path();
};

UniqueFd memory_file(const std::string& bytes) {
  UniqueFd fd(::memfd_create("elf", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return fd;
}

// A minimal ELF64 with one PT_NOTE that carries `id`, and `salt` bytes after it.
std::string tiny_elf(const std::string& id, const std::string& salt = "") {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Nhdr note{4, static_cast<Elf64_Word>(id.size()), NT_GNU_BUILD_ID};
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof(header) + sizeof(segment);
  segment.p_filesz = sizeof(note) + 4 + id.size();
  segment.p_align = 4;
  std::string out(reinterpret_cast<char*>(&header), sizeof(header));
  out.append(reinterpret_cast<char*>(&segment), sizeof(segment));
  out.append(reinterpret_cast<char*>(&note), sizeof(note));
  out.append("GNU\0", 4);
  return out + id + salt;
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path) << bytes;
}

// A child that maps `path` and waits; `setup` runs in it first.
class MappingChild {
 public:
  template <class Setup>
  MappingChild(const fs::path& path, Setup setup) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      uint64_t at = 0;
      if (setup()) {
        int fd = ::open(path.c_str(), O_RDONLY);
        void* map = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) at = reinterpret_cast<uint64_t>(map);
      }
      (void)!::write(ready[1], &at, sizeof(at));
      for (;;) ::pause();
    }
    EXPECT_EQ(::read(ready[0], &start, sizeof(start)), static_cast<ssize_t>(sizeof(start)));
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~MappingChild() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

  uint64_t start = 0;

 private:
  pid_t pid_ = -1;
};

TEST_F(ModuleFileTest, ReadsBuildIdOfATinyFile) {
  EXPECT_EQ(*read_build_id(memory_file(tiny_elf("\x01\xab\xff")).get()), "01abff");
  EXPECT_FALSE(read_build_id(memory_file("#!/bin/sh\n").get()).has_value());
  EXPECT_FALSE(read_build_id(memory_file("").get()).has_value());
}

TEST_F(ModuleFileTest, OwnExecutableOpensAndMatches) {
  UniqueFd self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  std::string id = *read_build_id(self.get());
  std::string path = fs::read_symlink("/proc/self/exe");
  auto file = open_module_file(0, 0, 0, path, id);
  ASSERT_TRUE(file.has_value()) << file.error().what;
  EXPECT_EQ(file->opened_path, path);
  EXPECT_EQ(file->build_id, id);
  auto wrong = open_module_file(0, 0, 0, path, "00112233");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().what.find("another build"), std::string::npos);
}

TEST_F(ModuleFileTest, DeletedAndReplacedFileIsReadThroughTheMapping) {
  fs::path path = dir_ / "lib.so";
  write_file(path, tiny_elf("old!"));
  MappingChild child(path, [] { return true; });
  ASSERT_NE(child.start, 0u);
  fs::remove(path);
  write_file(path, tiny_elf("new!"));
  for (std::string id : {"6f6c6421", ""}) {
    auto file = open_module_file(child.pid(), child.start, child.start + 4096,
                                 path.string() + " (deleted)", id);
    if (!file) GTEST_SKIP() << "skipped: map_files needs root: " << file.error().what;
    EXPECT_EQ(file->build_id, "6f6c6421");
    EXPECT_NE(file->opened_path.find("/map_files/"), std::string::npos);
  }
  auto fresh = open_module_file(child.pid(), child.start, child.start + 4096, path, "6e657721");
  ASSERT_TRUE(fresh.has_value());
  EXPECT_EQ(fresh->build_id, "6e657721");
}

TEST_F(ModuleFileTest, ExitedProcessWithoutBuildIdIsRefused) {
  fs::path path = dir_ / "lib.so";
  write_file(path, tiny_elf("abcd"));
  fs::permissions(dir_, fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  MappingChild child(path, [] { return true; });
  pid_t pid = child.pid();
  child.end();
  EXPECT_FALSE(open_module_file(pid, child.start, child.start + 4096, path, "").has_value());
  EXPECT_TRUE(open_module_file(pid, child.start, child.start + 4096, path, "61626364").has_value());
}

TEST_F(ModuleFileTest, OtherMountNamespaceWins) {
  fs::path path = dir_ / "lib.so";
  write_file(path, tiny_elf("host"));
  auto setup = [&] {
    if (::unshare(CLONE_NEWNS) != 0) return false;
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    if (::mount("tmpfs", dir_.c_str(), "tmpfs", 0, "size=1m") != 0) return false;
    write_file(path, tiny_elf("cont"));
    return true;
  };
  MappingChild child(path, setup);
  if (child.start == 0) GTEST_SKIP() << "skipped: mount namespaces need root";
  auto file = open_module_file(child.pid(), child.start, child.start + 4096, path, "636f6e74");
  ASSERT_TRUE(file.has_value()) << file.error().what;
  EXPECT_EQ(file->build_id, "636f6e74");
  auto in_root = open_in_root(child.pid(), path);
  ASSERT_TRUE(in_root.has_value()) << in_root.error().what;
  EXPECT_EQ(*read_build_id(in_root->get()), "636f6e74");
}

TEST_F(ModuleFileTest, FifoDoesNotBlock) {
  fs::path path = dir_ / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  auto file = open_module_file(0, 0, 0, path, "");
  ASSERT_FALSE(file.has_value());
  EXPECT_NE(file.error().what.find("not a regular file"), std::string::npos);
}

TEST_F(ModuleFileTest, VdsoHasBytesAndBuildId) {
  const VdsoImage& image = vdso_image();
  ASSERT_GE(image.bytes.size(), 4096u);
  EXPECT_EQ(image.bytes.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_GE(image.build_id.size(), 16u);
}

TEST_F(ModuleFileTest, MutatedHeadersNeverCrash) {
  std::string good = tiny_elf("0123456789abcdef");
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (int k = 0; k < 1 + i % 6; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    bad.resize(bad.size() - random() % (bad.size() / 2));
    (void)read_build_id(memory_file(bad).get());
  }
}

}  // namespace
}  // namespace assay::os
