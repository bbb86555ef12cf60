#include "formats/gperftools/maps.h"

namespace assay::formats {

ImportedMaps::ImportedMaps(std::string_view text) {
  // 7f0000001000-7f0000002000 r-xp 00001000 08:01 123   /usr/lib/libc.so.6
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    size_t dash = line.find('-'), space = line.find(' ');
    if (dash == line.npos || space == line.npos || dash > space) continue;
    auto start = parse_number<uint64_t>(line.substr(0, dash), 16);
    auto end = parse_number<uint64_t>(line.substr(dash + 1, space - dash - 1), 16);
    std::string_view rest = trimmed(line.substr(space));
    if (!start || !end || *end <= *start || rest.size() < 4 || rest[2] != 'x') continue;
    rest = trimmed(rest.substr(4));
    auto offset = parse_number<uint64_t>(rest.substr(0, rest.find(' ')), 16);
    size_t slash = rest.find_first_of("/[");
    if (!offset || slash == rest.npos) continue;
    std::string path(stored(rest.substr(slash)));
    if (path.ends_with(" (deleted)")) path.resize(path.size() - 10);
    if (main_.empty() && path.starts_with('/')) main_ = path;
    ranges_[*start] = {*end, *offset, std::move(path)};
  }
}

ImportedMaps::Ranges::const_iterator ImportedMaps::find(uint64_t address) const {
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin() || (--it)->second.end <= address) return ranges_.end();
  return it;
}

model::FrameId ImportedMaps::frame(RunBuilder& builder, uint64_t address) const {
  auto it = find(address);
  if (it == ranges_.end())
    return builder.frame({module_by_name(builder, "", "", address), address});
  const Range& range = it->second;
  model::ModuleId module = module_by_name(builder, range.path, "", address);
  bool relative = builder.modules()[module].kind == model::ModuleKind::elf ||
                  builder.modules()[module].kind == model::ModuleKind::vdso;
  return builder.frame({module, relative ? address - it->first + range.offset : address});
}

void ImportedMaps::store(RunBuilder& builder, model::ThreadId of_thread) const {
  for (const auto& [start, range] : ranges_) {
    model::ModuleId module = module_by_name(builder, range.path, "", start);
    builder.mapping(of_thread, {start, range.end, range.offset, module}, 0);
  }
}

}  // namespace assay::formats
