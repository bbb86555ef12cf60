#include "symbol/file_access.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace assay::symbol {
namespace {

// The pid by which the process knows itself: what it names its files by.
pid_t own_pid(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    size_t last = line.find_last_of(" \t");
    pid_t own = 0;
    std::from_chars(line.data() + last + 1, line.data() + line.size(), own);
    if (own > 0) return own;
  }
  return pid;
}

// The jitdump that a process mapped to make itself known: its path ends in jit-PID.dump.
std::string find_jit_dump(pid_t pid, pid_t own) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  std::string ending = fmt::format("jit-{}.dump", own);
  for (std::string line; std::getline(maps, line);) {
    size_t slash = line.find('/');
    if (slash != std::string::npos && line.ends_with(ending)) return line.substr(slash);
  }
  return "";
}

// elfutils' client library, loaded only when asked for: Assay does not depend on it.
struct DebuginfodLibrary {
  using Begin = void* (*)();
  using Find = int (*)(void*, const unsigned char*, int, char**);
  using End = void (*)(void*);
  void* handle = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  Begin begin = handle ? reinterpret_cast<Begin>(::dlsym(handle, "debuginfod_begin")) : nullptr;
  Find find =
      handle ? reinterpret_cast<Find>(::dlsym(handle, "debuginfod_find_debuginfo")) : nullptr;
  End end = handle ? reinterpret_cast<End>(::dlsym(handle, "debuginfod_end")) : nullptr;
};

class DirectFileAccess final : public FileAccess {
 public:
  Result<os::ModuleFile> open_module(pid_t pid, const model::Mapping& mapping,
                                     const model::Module& module) override {
    return os::open_module_file(pid, mapping.start, mapping.end, module.path, module.build_id);
  }
  Result<UniqueFd> open(pid_t pid, const std::string& path, bool on_host) override {
    return on_host ? os::open_on_host(pid, path) : os::open_in_root(pid, path);
  }
  Result<NamedFile> open_perf_map(pid_t pid) override {
    return open_owned(pid, fmt::format("/tmp/perf-{}.map", own_pid(pid)));
  }
  Result<NamedFile> open_jit_dump(pid_t pid) override {
    std::string path = find_jit_dump(pid, own_pid(pid));
    if (path.empty()) return fail("the process has mapped no jitdump");
    return open_owned(pid, path);
  }
  Result<NamedFile> ask_debuginfod(const std::string& build_id) override;

 private:
  // Written by the target's own user or by root: /tmp is everyone's.
  static Result<NamedFile> open_owned(pid_t pid, const std::string& path) {
    auto fd = os::open_in_root(pid, path);
    if (!fd) return fail("{} does not exist", path);
    struct stat target {
    }, written{};
    std::string process = fmt::format("/proc/{}", pid);
    if (::stat(process.c_str(), &target) != 0 || ::fstat(fd->get(), &written) != 0)
      return fail("the process has ended");
    if (written.st_uid != target.st_uid && written.st_uid != 0)
      return fail("{} belongs to another user", path);
    return NamedFile{std::move(*fd), path};
  }
};

Result<NamedFile> DirectFileAccess::ask_debuginfod(const std::string& build_id) {
  static const DebuginfodLibrary library;
  if (library.begin == nullptr || library.find == nullptr || library.end == nullptr) {
    return fail(
        "debuginfod was asked for, but libdebuginfod.so.1 is not installed; try: apt install "
        "libdebuginfod1");
  }
  const char* urls = std::getenv("DEBUGINFOD_URLS");
  if (urls == nullptr || *urls == '\0')
    return fail("debuginfod was asked for, but DEBUGINFOD_URLS names no server");
  void* client = library.begin();
  if (client == nullptr) return fail("debuginfod's library does not start");
  char* path = nullptr;
  // Length 0: the id is text.
  int fd = library.find(client, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, &path);
  library.end(client);
  std::string where = path != nullptr ? path : "debuginfod";
  std::free(path);
  if (fd < 0) return fail("debuginfod has no debug file for {}: {}", build_id, std::strerror(-fd));
  return NamedFile{UniqueFd(fd), where};
}

}  // namespace

std::shared_ptr<FileAccess> direct_file_access() {
  static const auto the_access = std::make_shared<DirectFileAccess>();
  return the_access;
}

}  // namespace assay::symbol
