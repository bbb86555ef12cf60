#include "symbol/source_text.h"

#include <algorithm>

#include <sys/stat.h>

#include "os/process/module_file.h"

namespace assay::symbol {
namespace {

std::optional<std::string> read_text(Result<UniqueFd> fd, uint64_t max_bytes) {
  if (!fd) return std::nullopt;
  struct stat st {};
  if (::fstat(fd->get(), &st) != 0 || static_cast<uint64_t>(st.st_size) > max_bytes)
    return std::nullopt;
  std::string text(static_cast<size_t>(st.st_size), '\0');
  size_t got = 0;
  while (got < text.size()) {
    ssize_t n = ::read(fd->get(), text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  text.resize(got);
  // Not text: nothing to show, and perhaps something that was not meant to be shown.
  if (text.find('\0') != std::string::npos) return std::nullopt;
  return text;
}

// A hostile module may name any file as its source; only what looks like one is opened.
bool looks_like_source(const std::string& path) {
  static constexpr std::string_view kEndings[] = {
      ".c",    ".cc",  ".cpp",   ".cxx", ".c++", ".C",   ".h",     ".hh",  ".hpp",
      ".hxx",  ".inc", ".inl",   ".ipp", ".tcc", ".def", ".S",     ".s",   ".asm",
      ".rs",   ".go",  ".d",     ".py",  ".pyx", ".js",  ".mjs",   ".cjs", ".ts",
      ".java", ".kt",  ".swift", ".f",   ".f90", ".adb", ".ads",   ".zig", ".nim",
      ".m",    ".mm",  ".cu",    ".cuh", ".y",   ".l",   ".proto", ".rb",  ".lua"};
  size_t slash = path.rfind('/');
  std::string_view name = std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1);
  // The C++ library's own headers have no ending at all.
  if (name.find('.') == std::string_view::npos) return path.find("/include/") != std::string::npos;
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view e) { return name.ends_with(e); });
}

}  // namespace

const SourceText::File* SourceText::open(const std::string& file) {
  auto it = files_.find(file);
  if (it != files_.end()) return it->second.get();
  if (files_.size() >= limits_.max_files || !file.starts_with('/') || !looks_like_source(file))
    return nullptr;
  auto text = read_text(os::open_in_root(pid_, file), limits_.max_file_bytes);
  if (!text && pid_ != 0) text = read_text(os::open_on_host(pid_, file), limits_.max_file_bytes);
  std::unique_ptr<File>& slot = files_[file];
  if (!text) return nullptr;
  slot = std::make_unique<File>();
  slot->text = std::move(*text);
  slot->starts.push_back(0);
  for (size_t at = 0; (at = slot->text.find('\n', at)) != std::string::npos;)
    slot->starts.push_back(++at);
  if (slot->starts.back() != slot->text.size()) slot->starts.push_back(slot->text.size());
  return slot.get();
}

std::string SourceText::clean(const File& file, size_t line) const {
  size_t begin = file.starts[line - 1];
  size_t size = std::min(file.starts[line] - begin, limits_.max_line_bytes + 4);
  std::string out = file.text.substr(begin, size);
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r' || out.back() == ' '))
    out.pop_back();
  if (out.size() > limits_.max_line_bytes) {
    out.resize(limits_.max_line_bytes);
    // Not in the middle of a character.
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xc0) out.pop_back();
    out += "…";
  }
  for (char& c : out) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = ' ';
  }
  return out;
}

std::optional<std::string> SourceText::source_line(const std::string& file, uint32_t line) {
  auto lines = source_lines(file, line, line);
  return lines.empty() ? std::nullopt : std::optional(std::move(lines.front()));
}

std::vector<std::string> SourceText::source_lines(const std::string& file, uint32_t first,
                                                  uint32_t last) {
  std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  const File* text = open(file);
  if (text == nullptr || first == 0) return out;
  for (size_t line = first; line <= last && line < text->starts.size(); ++line)
    out.push_back(clean(*text, line));
  return out;
}

}  // namespace assay::symbol
