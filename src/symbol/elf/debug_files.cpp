#include "symbol/elf/debug_files.h"

#include <algorithm>

#include <fcntl.h>
#include <zlib.h>

#include "symbol/file_access.h"

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

}  // namespace

FoundFile DebugFiles::open(const std::string& path) {
  for (bool on_host : {false, true}) {
    if (!on_host && pid_ == 0) continue;
    auto fd = files_->open(pid_, path, on_host);
    if (!fd) continue;
    auto source = ByteSource::from_file(std::move(*fd));
    if (!source) continue;
    auto file = ElfFile::open(std::move(*source));
    if (file) return {std::move(*file), path};
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
  auto answer = files_->ask_debuginfod(build_id);
  if (!answer) {
    problem_ = answer.error().what;
    return {};
  }
  auto source = ByteSource::from_file(std::move(answer->fd));
  if (!source) return {};
  auto file = ElfFile::open(std::move(*source));
  if (!file || (*file)->build_id() != build_id) return {};
  return {std::move(*file), answer->path};
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
