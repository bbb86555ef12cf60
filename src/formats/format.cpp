#include "formats/format.h"

#include <algorithm>
#include <tuple>

namespace assay::formats {

// Made by the build from the folders that have a format.cpp.
std::vector<std::span<const FormatSpec>> format_folders();

const Formats& all_formats() {
  static const Formats all = [] {
    Formats out;
    for (std::span<const FormatSpec> folder : format_folders()) {
      for (const FormatSpec& format : folder) out.push_back(&format);
    }
    std::ranges::sort(
        out, {}, [](const FormatSpec* format) { return std::tuple(format->place, format->name); });
    return out;
  }();
  return all;
}

Formats formats_with(const Formats& among,
                     const std::function<bool(const FormatSpec&)>& is_wanted) {
  Formats out;
  for (const FormatSpec* format : among) {
    if (is_wanted(*format)) out.push_back(format);
  }
  return out;
}

const Formats& written_formats() {
  static const Formats written =
      formats_with(all_formats(), [](const FormatSpec& format) { return format.write != nullptr; });
  return written;
}

const Formats& read_formats() {
  static const Formats read =
      formats_with(all_formats(), [](const FormatSpec& format) { return format.read != nullptr; });
  return read;
}

const FormatSpec* find_format(std::string_view name) {
  auto found = std::ranges::find(all_formats(), name, &FormatSpec::name);
  return found == all_formats().end() ? nullptr : *found;
}

const FormatSpec* format_of_file(std::string_view path) {
  const FormatSpec* found = nullptr;
  size_t longest = 0;
  for (const FormatSpec* format : written_formats()) {
    for (std::string_view suffix : format->suffixes) {
      if (suffix.size() <= longest || !path.ends_with(suffix)) continue;
      longest = suffix.size();
      found = format;
    }
  }
  return found;
}

const FormatSpec* detect_format(std::string_view head) {
  static const Formats surest_first = [] {
    Formats out = read_formats();
    std::ranges::stable_sort(out, {}, &FormatSpec::sure);
    return out;
  }();
  for (const FormatSpec* format : surest_first) {
    if (format->detect(head)) return format;
  }
  return nullptr;
}

std::string format_list(const Formats& formats, std::string_view last, size_t wrap) {
  std::string text;
  size_t line = 0;
  for (size_t i = 0; i < formats.size(); ++i) {
    std::string_view between = i == 0 ? "" : i + 1 < formats.size() ? ", " : last;
    size_t grown = text.size() - line + between.size() + formats[i]->name.size();
    text += between;
    if (between == ", " && grown > wrap) {
      text.back() = '\n';
      line = text.size();
    }
    text += formats[i]->name;
  }
  return text;
}

std::string format_choice(const Formats& formats) {
  std::string text;
  for (const FormatSpec* format : formats) {
    if (!text.empty()) text += '|';
    text += format->name;
  }
  return text;
}

}  // namespace assay::formats
