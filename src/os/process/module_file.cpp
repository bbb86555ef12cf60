#include "os/process/module_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_door.h"
#include "elf/elf_file.h"
#include "os/process/binary_reader.h"
#include "os/regular_file.h"
#include "os/sandbox/credentials.h"

namespace assay::os {
namespace {

// One line of /proc/PID/maps that has a file.
struct MapsLine {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t inode = 0;
  std::string path;
};

std::string read_whole(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd.valid()) return text;
  char chunk[65536];
  for (;;) {
    ssize_t n = ::read(fd.get(), chunk, sizeof(chunk));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(chunk, static_cast<size_t>(n));
  }
}

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

// start-end perms offset dev inode path
std::optional<MapsLine> parse_mapped_file(std::string_view line) {
  MapsLine out;
  std::string_view range = next_word(line);
  const char* last = range.data() + range.size();
  auto [dash, first_error] = std::from_chars(range.data(), last, out.start, 16);
  if (first_error != std::errc() || dash == last || *dash != '-') return std::nullopt;
  if (std::from_chars(dash + 1, last, out.end, 16).ec != std::errc()) return std::nullopt;
  next_word(line);
  next_word(line);
  next_word(line);
  std::string_view inode = next_word(line);
  std::from_chars(inode.data(), inode.data() + inode.size(), out.inode);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  out.path = line;
  return out;
}

constexpr std::string_view kDeleted = " (deleted)";

std::string_view without_deleted(std::string_view path) {
  return path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
}

// The line that maps `path` at `start`; ranges differ from the recorded ones after mprotect or
// merges, so a line that only contains the start, or only has the path, will do.
std::optional<MapsLine> find_mapping(pid_t pid, uint64_t start, std::string_view path) {
  std::string text = read_whole(fmt::format("/proc/{}/maps", pid));
  std::optional<MapsLine> found;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    auto parsed = parse_mapped_file(line);
    if (!parsed || parsed->inode == 0) continue;
    if (without_deleted(parsed->path) != without_deleted(path)) continue;
    if (parsed->start <= start && start < parsed->end) return parsed;
    if (!found) found = std::move(parsed);
  }
  return found;
}

// Runs `open` with the rights of process `pid`; 0: with those of the caller. Of a process that has
// ended the user is not known any more: then only what everyone may read is opened.
template <class Open>
Result<UniqueFd> with_rights_of(pid_t pid, const std::string& shown, Open open) {
  if (pid == 0) return open();
  ActAs user(credentials_of(pid).value_or(Credentials{kNobody, kNobody, {}}));
  if (!user.holds())
    return fail("the rights of process {} cannot be taken on to open {}", pid, shown);
  return open();
}

struct Wanted {
  const std::string& build_id;
  uint64_t inode;  // 0: unknown
  bool anything;   // nothing is known to check against (pid 0 without a build id)
};

Result<ModuleFile> accept(Result<UniqueFd> fd, const std::string& path, const Wanted& wanted,
                          bool is_mapped_file) {
  if (!fd) return std::unexpected(fd.error());
  ModuleFile file{std::move(*fd), path, ""};
  if (auto id = binary_reader().build_id(file.fd.get())) file.build_id = *id;
  if (!wanted.build_id.empty()) {
    if (file.build_id == wanted.build_id) return file;
    return fail("{} is another build: its build id is {}, the mapped file's is {}", path,
                file.build_id.empty() ? "missing" : file.build_id, wanted.build_id);
  }
  if (is_mapped_file || wanted.anything) return file;
  struct stat st {};
  if (wanted.inode != 0 && ::fstat(file.fd.get(), &st) == 0 && st.st_ino == wanted.inode)
    return file;
  return fail("{} is not known to be the mapped file: neither has a build id and the inodes differ",
              path);
}

}  // namespace

Result<UniqueFd> open_on_host(pid_t pid, const std::string& path) {
  if (path.empty() || path[0] != '/') return fail("not an absolute path: {}", path);
  if (pid == 0 && asks_for_files()) {  // an import: who started us opens it, or refuses
    auto found = file_door().open(path, Purpose::module);
    if (!found) return std::unexpected(found.error());
    return std::move(found->fd);
  }
  return with_rights_of(pid, path, [&] { return open_regular(path); });
}

Result<UniqueFd> open_in_root(pid_t pid, const std::string& path) {
  if (pid == 0) return open_on_host(0, path);
  std::string shown = fmt::format("/proc/{}/root{}", pid, path);
  if (path.empty() || path[0] != '/') return fail("not an absolute path: {}", path);
  std::string root_path = fmt::format("/proc/{}/root", pid);
  UniqueFd root(::open(root_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return fail_errno("cannot enter {}", root_path);
  return with_rights_of(pid, shown, [&] {
    // A link in the target's tree must not lead into ours.
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    long named = ::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof(how));
    return open_regular(UniqueFd(static_cast<int>(named)), shown);
  });
}

Result<std::string> read_build_id(int fd) {
  auto file = elf::ElfFile::open(fd, elf::Classes::both);
  if (!file) return std::unexpected(file.error());
  return (*file)->build_id();
}

Result<ModuleFile> open_module_file(pid_t pid, uint64_t start, uint64_t end,
                                    const std::string& path, const std::string& build_id) {
  if (path.empty() || path[0] != '/')
    return fail("no file is mapped: {}", path.empty() ? "anonymous memory" : path);
  std::string clean(without_deleted(path));
  if (pid == 0) return accept(open_in_root(0, clean), clean, {build_id, 0, true}, false);

  Wanted wanted{build_id, 0, false};
  std::vector<std::string> links;
  if (auto line = find_mapping(pid, start, path)) {
    wanted.inode = line->inode;
    links.push_back(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, line->start, line->end));
  } else if (!build_id.empty()) {
    links.push_back(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, start, end));
  }
  std::optional<Error> mismatch;  // says more than "no such file" of a later candidate
  auto try_one = [&](Result<UniqueFd> fd, const std::string& shown,
                     bool is_mapped) -> std::optional<ModuleFile> {
    bool opened = fd.has_value();
    auto file = accept(std::move(fd), shown, wanted, is_mapped);
    if (file) return std::move(*file);
    if (!mismatch || (opened && mismatch->code != 0)) mismatch = file.error();
    return std::nullopt;
  };
  for (const auto& link : links) {
    if (auto file = try_one(open_regular(link), link, true)) return std::move(*file);
  }
  std::string in_root = fmt::format("/proc/{}/root{}", pid, clean);
  if (auto file = try_one(open_in_root(pid, clean), in_root, false)) return std::move(*file);
  if (auto file = try_one(open_on_host(pid, clean), clean, false)) return std::move(*file);
  if (mismatch->code == EACCES || mismatch->code == EPERM) {
    mismatch->remedy =
        "run as root, or: sudo setcap cap_sys_ptrace,cap_checkpoint_restore+ep assay";
  }
  return std::unexpected(*mismatch);
}

const VdsoImage& vdso_image() {
  static const VdsoImage image = [] {
    VdsoImage out;
    uint64_t base = ::getauxval(AT_SYSINFO_EHDR);
    if (base == 0) return out;
    std::string text = read_whole("/proc/self/maps");
    std::string_view rest = text;
    while (!rest.empty()) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      auto parsed = parse_mapped_file(line);
      if (!parsed || parsed->start != base) continue;
      out.bytes.assign(reinterpret_cast<const char*>(base), parsed->end - parsed->start);
    }
    if (auto file = elf::ElfFile::open_memory(out.bytes)) out.build_id = (*file)->build_id();
    return out;
  }();
  return image;
}

}  // namespace assay::os
