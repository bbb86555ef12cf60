#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "base/wire.h"
#include "model/stack.h"
#include "os/process/module_file.h"
#include "reader/readers.h"
#include "reader/remote_binaries.h"
#include "symbol/file_access.h"
#include "unwind/table/build_from_file.h"

extern "C" __attribute__((noinline)) int assay_reader_test_function(int x) {
  asm volatile("");
  return x + 1;
}

namespace assay::reader {
namespace {

ReaderOptions options() {
  ReaderOptions out;
  out.program = READER_HOST;
  return out;
}

struct Place {
  model::Module module;
  model::Mapping mapping;
  uint64_t address = 0;
};

// Where a function of this process lies.
Place place_of(const void* pointer, uint32_t id) {
  auto wanted = reinterpret_cast<uint64_t>(pointer);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t start, end, offset, inode;
    char perms[5], dev[16];
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %15s %lu %n", &start, &end, perms, &offset, dev,
                    &inode, &path_at) < 6)
      continue;
    if (wanted < start || wanted >= end) continue;
    Place place;
    place.module = {model::ModuleId{id}, model::ModuleKind::elf,
                    line.substr(static_cast<size_t>(path_at)), ""};
    place.mapping = {start, end, offset, place.module.id};
    place.address = wanted - start + offset;
    return place;
  }
  return {};
}

// A hostile file in the place of a module.
class HostileFile final : public symbol::FileAccess {
 public:
  explicit HostileFile(std::string path) : path_(std::move(path)) {}
  Result<os::ModuleFile> open_module(pid_t, const model::Mapping&, const model::Module&) override {
    return os::ModuleFile{UniqueFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)), path_, ""};
  }
  Result<UniqueFd> open(pid_t pid, const std::string& path, bool) override {
    asked.push_back(std::to_string(pid) + " " + path);
    return fail("no");
  }
  Result<symbol::NamedFile> open_perf_map(pid_t) override { return fail("no"); }
  Result<symbol::NamedFile> open_jit_dump(pid_t) override { return fail("no"); }
  Result<symbol::NamedFile> ask_debuginfod(const std::string&) override { return fail("no"); }
  std::vector<std::string> asked;

 private:
  std::string path_;
};

TEST(Readers, NameWhatTheSymbolizerNames) {
  Readers readers(options());
  auto remote = readers.symbolizer({});
  auto direct = symbol::Symbolizer::create({});
  Place own = place_of(reinterpret_cast<const void*>(&assay_reader_test_function), 0);
  Place libc = place_of(reinterpret_cast<const void*>(&std::qsort), 1);
  std::vector<model::Frame> frames;
  for (const Place& place : {own, libc}) {
    remote->add_module(::getpid(), place.mapping, place.module);
    direct->add_module(::getpid(), place.mapping, place.module);
    for (uint64_t i = 0; i < 200; ++i) frames.push_back({place.module.id, place.address + i * 7});
  }
  auto there = remote->resolve_all(frames), here = direct->resolve_all(frames);
  ASSERT_EQ(there.size(), here.size());
  EXPECT_EQ(there[0].back().function, "assay_reader_test_function")
      << remote->module_status(own.module.id).problem;
  for (size_t i = 0; i < here.size(); ++i) {
    ASSERT_EQ(there[i].size(), here[i].size()) << i;
    for (size_t k = 0; k < here[i].size(); ++k) {
      EXPECT_EQ(there[i][k].function, here[i][k].function);
      EXPECT_EQ(there[i][k].file, here[i][k].file);
      EXPECT_EQ(there[i][k].line, here[i][k].line);
    }
  }
  EXPECT_EQ(remote->module_status(own.module.id).source,
            direct->module_status(own.module.id).source);
}

TEST(Readers, BuildTheTableThatTheUnwinderBuilds) {
  Readers readers(options());
  UniqueFd self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  auto there = readers.table_builder()(self.get(), "");
  auto here = unwind::build_from_file(self.get(), "");
  ASSERT_TRUE(there) << there.error().what;
  ASSERT_TRUE(here);
  EXPECT_EQ(*there, *here);
}

TEST(Readers, AReaderThatDiesCostsOneModuleOnly) {
  Readers readers(options());
  auto remote = readers.symbolizer({});
  // Ids that go to the same reader.
  auto step = static_cast<uint32_t>(readers.count());
  Place own = place_of(reinterpret_cast<const void*>(&assay_reader_test_function), 0);
  Place again = own;
  again.module.id = again.mapping.module = model::ModuleId{step};
  remote->add_module(::getpid(), own.mapping, own.module);
  remote->add_module(::getpid(), again.mapping, again.module);
  EXPECT_EQ(remote->resolve(own.module.id, own.address).back().function,
            "assay_reader_test_function");
  // As a hostile file would do it.
  auto process = readers.of(0);
  EXPECT_FALSE(process->ask("nonsense", {}, 0)) << "it ends at a message that is none";
  EXPECT_EQ(remote->resolve(again.module.id, again.address).back().function,
            "assay_reader_test_function");
  EXPECT_EQ(remote->resolve(own.module.id, own.address).back().function,
            "assay_reader_test_function");
  EXPECT_EQ(process->generation(), 2u);
}

std::string sparse_elf(const std::string& folder, uint64_t symbols_bytes) {
  std::string path = folder + "/sparse";
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_shoff = sizeof header;
  header.e_shnum = 4;
  header.e_shstrndx = 3;
  Elf64_Shdr sections[4]{};
  sections[1] = {1, SHT_SYMTAB, 0, 0, 1 << 20, symbols_bytes, 2, 0, 8, sizeof(Elf64_Sym)};
  sections[2] = {9, SHT_STRTAB, 0, 0, (1u << 20) + symbols_bytes, 1 << 20, 0, 0, 1, 0};
  const char names[] = "\0.symtab\0.strtab\0.shstrtab";
  sections[3] = {17, SHT_STRTAB, 0, 0, 4096, sizeof names, 0, 0, 1, 0};
  EXPECT_EQ(::pwrite(fd, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  EXPECT_EQ(::pwrite(fd, sections, sizeof sections, sizeof header),
            static_cast<ssize_t>(sizeof sections));
  EXPECT_EQ(::pwrite(fd, names, sizeof names, 4096), static_cast<ssize_t>(sizeof names));
  EXPECT_EQ(::ftruncate(fd, static_cast<off_t>((2u << 20) + symbols_bytes)), 0);
  ::close(fd);
  return path;
}

// The promise of docs/security.md: so much CPU time and memory a module, and the capture goes on.
// Less time here, so that the test is short.
TEST(Readers, AHugeSparseFileIsGivenUp) {
  if (kSanitized) GTEST_SKIP() << "skipped: sanitizers take more memory than the limit";
  char name[] = "/tmp/assay-reader-XXXXXX";
  std::string folder = ::mkdtemp(name);
  for (uint64_t bytes : {uint64_t{100} << 30, uint64_t{1000} << 30}) {
    symbol::Options hostile;
    hostile.files = std::make_shared<HostileFile>(sparse_elf(folder, bytes));
    ReaderOptions brief = options();
    brief.most_cpu_ns = 500'000'000;
    Readers readers(brief);
    auto remote = readers.symbolizer(hostile);
    model::Module module{model::ModuleId{0}, model::ModuleKind::elf, "/hostile", ""};
    remote->add_module(::getpid(), {}, module);
    auto names = remote->resolve(module.id, 0x1234);
    ASSERT_FALSE(names.empty());
    EXPECT_EQ(names.back().function, "hostile+0x1234");
    EXPECT_NE(remote->module_status(module.id).problem, "");
  }
  std::filesystem::remove_all(folder);
}

TEST(RemoteBinaries, TellWhatThisProcessWouldRead) {
  UniqueFd own(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  auto id_here = os::read_build_id(own.get());
  auto here = os::read_binary_facts(own.get());
  ASSERT_TRUE(id_here && here);
  EXPECT_EQ(&os::binary_reader(), &os::binary_reader());
  RemoteBinaries remote(options());
  ASSERT_EQ(&os::binary_reader(), &remote) << "it is asked from now on";
  auto id_there = os::binary_reader().build_id(own.get());
  auto there = os::binary_reader().facts(own.get());
  ASSERT_TRUE(id_there && there) << (id_there ? there.error().what : id_there.error().what);
  EXPECT_EQ(*id_there, *id_here);
  EXPECT_EQ(there->build_id, here->build_id);
  EXPECT_EQ(there->linkage, here->linkage);
  EXPECT_EQ(there->has_symtab, here->has_symtab);
  EXPECT_EQ(there->has_dynsym, here->has_dynsym);
  EXPECT_EQ(there->has_debug_info, here->has_debug_info);
  EXPECT_EQ(there->has_debug_link, here->has_debug_link);
  EXPECT_EQ(there->units_read, here->units_read);
  EXPECT_EQ(there->units_optimised, here->units_optimised);
  EXPECT_EQ(there->units_debug, here->units_debug);
  EXPECT_EQ(there->compiler, here->compiler);
  EXPECT_EQ(there->flags, here->flags);
  EXPECT_EQ(there->optimisation, here->optimisation);
  EXPECT_EQ(there->frame_pointers, here->frame_pointers);
  EXPECT_EQ(there->limit, here->limit);
  EXPECT_EQ(there->sanitizers, here->sanitizers);
}

TEST(RemoteBinaries, WhatIsNoProgramIsAnErrorAndTheNextQuestionIsAnswered) {
  RemoteBinaries remote(options());
  UniqueFd text(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(remote.facts(text.get()));
  UniqueFd own(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(remote.build_id(own.get()));
}

TEST(Wire, WrongLengthsReadAsNothing) {
  std::string bytes = WireWriter().u32(7).text("name").take();
  WireReader whole(bytes);
  EXPECT_EQ(whole.u32(), 7u);
  EXPECT_EQ(whole.text(), "name");
  EXPECT_TRUE(whole.done());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    WireReader in(std::string_view(bytes).substr(0, cut));
    in.u32();
    in.text();
    EXPECT_FALSE(in.done()) << cut;
  }
  WireReader liar(std::string_view("\xff\xff\xff\xff", 4));
  EXPECT_EQ(liar.count(1), 0u);
  EXPECT_FALSE(liar.ok());
}

}  // namespace
}  // namespace assay::reader
