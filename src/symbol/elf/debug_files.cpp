#include "symbol/elf/debug_files.h"

#include <algorithm>
#include <cstdlib>

#include <dlfcn.h>
#include <fcntl.h>
#include <zlib.h>

#include "os/process/module_file.h"

namespace assay::symbol {
namespace {

constexpr const char* kDebugRoot = "/usr/lib/debug";

std::string build_id_path(const std::string& build_id) {
  return fmt::format("{}/.build-id/{}/{}.debug", kDebugRoot, build_id.substr(0, 2),
                     build_id.substr(2));
}

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

uint32_t file_crc(ElfFile& file) {
  constexpr uint64_t kStep = 1 << 20;
  uLong crc = ::crc32(0, nullptr, 0);
  for (uint64_t at = 0; at < file.source().size(); at += kStep) {
    std::string_view bytes = file.source().view(at, kStep);
    crc =
        ::crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    file.source().release(at, kStep);
  }
  return static_cast<uint32_t>(crc);
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

}  // namespace

FoundFile DebugFiles::open(const std::string& path) {
  for (pid_t pid : {pid_, pid_t{0}}) {
    auto fd = os::open_in_root(pid, path);
    if (!fd) {
      if (pid == 0) break;
      continue;
    }
    auto source = ByteSource::from_file(std::move(*fd));
    if (!source) continue;
    auto file = ElfFile::open(std::move(*source));
    if (file) return {std::move(*file), path};
    if (pid == 0) break;
  }
  return {};
}

FoundFile DebugFiles::open_with_build_id(const std::string& path, const std::string& build_id) {
  FoundFile found = open(path);
  if (found.file && found.file->build_id() == build_id) return found;
  if (found.file) problem_ = fmt::format("{} is of another build", path);
  return {};
}

FoundFile DebugFiles::find_debug(ElfFile& module, const std::string& build_id) {
  if (build_id.size() > 2) {
    if (auto found = open_with_build_id(build_id_path(build_id), build_id); found.file)
      return found;
  }
  if (auto link = module.debug_link()) {
    if (auto found = find_by_link(*link, build_id); found.file) return found;
  }
  if (debuginfod_ && build_id.size() > 2) return ask_debuginfod(build_id);
  return {};
}

FoundFile DebugFiles::find_by_link(const DebugLink& link, const std::string& build_id) {
  std::string folder = folder_of(module_path_);
  if (folder.empty() && !module_path_.starts_with('/')) return {};
  for (const std::string& path : {folder + "/" + link.name, folder + "/.debug/" + link.name,
                                  kDebugRoot + folder + "/" + link.name}) {
    if (path == module_path_) continue;
    FoundFile found = open(path);
    if (!found.file) continue;
    std::string id = found.file->build_id();
    bool same =
        !build_id.empty() && !id.empty() ? id == build_id : file_crc(*found.file) == link.crc;
    if (same) return found;
    problem_ = fmt::format("{} is of another build", path);
  }
  return {};
}

FoundFile DebugFiles::ask_debuginfod(const std::string& build_id) {
  static const DebuginfodLibrary library;
  if (library.begin == nullptr || library.find == nullptr || library.end == nullptr) {
    problem_ =
        "debuginfod was asked for, but libdebuginfod.so.1 is not installed; try: apt install "
        "libdebuginfod1";
    return {};
  }
  const char* urls = std::getenv("DEBUGINFOD_URLS");
  if (urls == nullptr || *urls == '\0') {
    problem_ = "debuginfod was asked for, but DEBUGINFOD_URLS names no server";
    return {};
  }
  void* client = library.begin();
  if (client == nullptr) return {};
  char* path = nullptr;
  // Length 0: the id is text.
  int fd = library.find(client, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, &path);
  library.end(client);
  std::string where = path != nullptr ? path : "debuginfod";
  std::free(path);
  if (fd < 0) {
    problem_ = fmt::format("debuginfod has no debug file for {}: {}", build_id, std::strerror(-fd));
    return {};
  }
  auto source = ByteSource::from_file(UniqueFd(fd));
  if (!source) return {};
  auto file = ElfFile::open(std::move(*source));
  if (!file || (*file)->build_id() != build_id) return {};
  return {std::move(*file), where};
}

FoundFile DebugFiles::find_alt(ElfFile& of, const std::string& path) {
  auto link = of.debug_alt_link();
  if (!link) return {};
  std::string named = link->name.starts_with('/') ? link->name : folder_of(path) + "/" + link->name;
  if (auto found = open_with_build_id(named, link->build_id); found.file) return found;
  if (auto found = open_with_build_id(build_id_path(link->build_id), link->build_id); found.file)
    return found;
  if (debuginfod_) {
    if (auto found = ask_debuginfod(link->build_id); found.file) return found;
  }
  problem_ = fmt::format("the shared debug file {} is missing", named);
  return {};
}

FoundFile DebugFiles::find_dwo(const std::string& comp_dir, const std::string& name) {
  // Only what is named as such a file is opened at all: the name comes from the module.
  if (!name.ends_with(".dwo")) return {};
  std::string path = name.starts_with('/') ? name : comp_dir + "/" + name;
  if (auto found = open(path); found.file) return found;
  // Moved together with the program.
  size_t slash = name.rfind('/');
  std::string base = slash == std::string::npos ? name : name.substr(slash + 1);
  if (auto found = open(folder_of(module_path_) + "/" + base); found.file) return found;
  problem_ = fmt::format("{} is missing", path);
  return {};
}

FoundFile DebugFiles::find_dwp() {
  return open(module_path_ + ".dwp");
}

}  // namespace assay::symbol
