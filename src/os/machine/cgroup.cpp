#include "os/machine/cgroup.h"

#include <algorithm>

#include <sys/stat.h>

#include "base/clock.h"
#include "os/text_fields.h"

namespace assay::os {
namespace {

constexpr int kMaxLevels = 32;  // deeper trees exist only to hurt us

// v1 writes "no limit" as the largest page-aligned number; anything near it is no limit.
constexpr uint64_t kUnlimitedBytes = uint64_t{1} << 60;

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape_octal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      int code = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string text_of(const std::string& dir, const char* file) {
  return read_text_file(dir + "/" + file).value_or("");
}

// The own directory first, then each parent up to and with the mount point.
std::vector<CgroupDir> levels_up(const CgroupDir& own) {
  std::vector<CgroupDir> levels;
  CgroupDir level = own;
  while (!level.dir.empty() && levels.size() < kMaxLevels) {
    levels.push_back(level);
    if (level.dir.size() <= level.mount.size()) break;
    size_t slash = level.dir.rfind('/');
    if (slash == std::string::npos || slash < level.mount.size()) break;
    level.dir.resize(slash);
    level.path = level.dir.substr(level.mount.size());
    if (level.path.empty()) level.path = "/";
  }
  return levels;
}

std::optional<double> quota_of(const CgroupDir& level) {
  std::optional<int64_t> quota, period;
  if (level.v2) {
    std::string text = text_of(level.dir, "cpu.max");  // "max 100000" or "50000 100000"
    auto words = split_words(text);
    if (words.size() < 2) return {};
    quota = parse_i64(words[0]);
    period = parse_i64(words[1]);
  } else {
    quota = parse_i64(text_of(level.dir, "cpu.cfs_quota_us"));  // −1: no limit
    period = parse_i64(text_of(level.dir, "cpu.cfs_period_us"));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return {};
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

CgroupCpuStat cpu_stat_of(const CgroupDir& level) {
  std::string text = text_of(level.dir, "cpu.stat");
  CgroupCpuStat stat;
  stat.periods = parse_u64(field_after(text, "nr_periods")).value_or(0);
  stat.throttled_periods = parse_u64(field_after(text, "nr_throttled")).value_or(0);
  stat.throttled_ns = level.v2
                          ? parse_i64(field_after(text, "throttled_usec")).value_or(0) * kNsPerUs
                          : parse_i64(field_after(text, "throttled_time")).value_or(0);
  return stat;
}

}  // namespace

CgroupFs::CgroupFs(std::string proc_root, std::string path_prefix)
    : proc_root_(std::move(proc_root)), path_prefix_(std::move(path_prefix)) {
  read_mounts();
}

// "31 23 0:28 ROOT MOUNT_POINT OPTIONS [optional…] - TYPE SOURCE SUPER_OPTIONS"
void CgroupFs::read_mounts() {
  std::string text = read_text_file(proc_root_ + "/self/mountinfo").value_or("");
  for (std::string_view line : split(text, '\n')) {
    size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    auto before = split_words(line.substr(0, dash));
    auto after = split_words(line.substr(dash + 3));
    if (before.size() < 5 || after.size() < 3) continue;
    if (after[0] != "cgroup" && after[0] != "cgroup2") continue;
    Mount mount;
    mount.root = unescape_octal(before[3]);
    mount.mount_point = path_prefix_ + unescape_octal(before[4]);
    mount.v2 = after[0] == "cgroup2";
    if (!mount.v2) {
      for (std::string_view option : split(after[2], ',')) mount.controllers.emplace_back(option);
    }
    mounts_.push_back(std::move(mount));
  }
}

// A container may see only a part of the hierarchy (root "/docker/x"), and a process outside our
// cgroup namespace has a path that begins with "/..": then there is no directory to read.
CgroupDir CgroupFs::place_in(const Mount& mount, std::string_view path) const {
  CgroupDir place;
  if (mount.root != "/" && mount.root != path && path.starts_with(mount.root + "/")) {
    path.remove_prefix(mount.root.size());
  } else if (mount.root == path) {
    path = "/";
  }
  if (path.empty() || path[0] != '/' || path.find("/..") != std::string_view::npos) return place;
  std::string dir = mount.mount_point + (path == "/" ? "" : std::string(path));
  struct stat info {};
  if (::stat(dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return place;
  place.dir = std::move(dir);
  place.mount = mount.mount_point;
  place.path = std::string(path);
  place.v2 = mount.v2;
  return place;
}

std::string service_name(std::string_view cgroup_path) {
  // A container's id is 64 hexadecimal digits, alone or as in "docker-ID.scope".
  constexpr size_t kIdDigits = 64, kShownDigits = 12;
  std::string unit;
  for (std::string_view part : split(cgroup_path, '/')) {
    std::string_view id = part.ends_with(".scope") ? part.substr(0, part.size() - 6) : part;
    if (size_t dash = id.rfind('-'); dash != id.npos) id.remove_prefix(dash + 1);
    bool container = id.size() == kIdDigits &&
                     id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (container) return fmt::format("container {}", id.substr(0, kShownDigits));
    if (part.ends_with(".service") || part.ends_with(".scope")) unit = part;
  }
  if (!unit.empty()) return unit;
  return cgroup_path == "/" ? "" : std::string(cgroup_path);
}

Result<CgroupPlace> CgroupFs::find(pid_t pid) const {
  std::string file = fmt::format("{}/{}/cgroup", proc_root_, pid);
  auto text = read_text_file(file);
  if (!text) return fail_errno("cannot read the control groups of process {} ({})", pid, file);

  CgroupPlace place;
  CgroupDir unified;
  for (std::string_view line : split(*text, '\n')) {  // "4:memory:/path", v2: "0::/path"
    size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view names = line.substr(first + 1, second - first - 1);
    std::string_view path = line.substr(second + 1);
    if (path.ends_with(" (deleted)")) continue;
    for (const Mount& mount : mounts_) {
      if (mount.v2) {
        if (names.empty() && unified.dir.empty()) unified = place_in(mount, path);
        continue;
      }
      for (std::string_view name : split(names, ',')) {
        if (std::ranges::find(mount.controllers, name) == mount.controllers.end()) continue;
        CgroupDir* slot = name == "cpu"       ? &place.cpu
                          : name == "cpuacct" ? &place.cpuacct
                          : name == "memory"  ? &place.memory
                          : name == "cpuset"  ? &place.cpuset
                                              : nullptr;
        if (slot != nullptr && slot->dir.empty()) *slot = place_in(mount, path);
      }
    }
  }
  for (CgroupDir* slot : {&place.cpu, &place.cpuacct, &place.memory, &place.cpuset}) {
    if (slot->dir.empty()) *slot = unified;
  }
  place.name = place.cpu.path == "/" && unified.path.size() > 1 ? unified.path : place.cpu.path;
  return place;
}

CgroupLimits CgroupFs::limits(const CgroupPlace& place) const {
  CgroupLimits limits;
  for (const CgroupDir& level : levels_up(place.cpu)) {
    auto quota = quota_of(level);
    if (!quota || (limits.quota_cpus && *limits.quota_cpus <= *quota)) continue;
    limits.quota_cpus = quota;
    limits.quota_path = level.path;
  }
  for (const CgroupDir& level : levels_up(place.memory)) {
    const char* file = level.v2 ? "memory.max" : "memory.limit_in_bytes";
    auto limit = parse_u64(text_of(level.dir, file));  // v2's "max" is no number: no limit
    if (!limit || *limit >= kUnlimitedBytes) continue;
    limits.memory_bytes = std::min(limits.memory_bytes.value_or(UINT64_MAX), *limit);
  }
  // A v2 group without the cpuset controller has no such file: its parent's set holds.
  for (const CgroupDir& level : levels_up(place.cpuset)) {
    std::string list =
        text_of(level.dir, level.v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus");
    if (trim(list).empty()) list = text_of(level.dir, "cpuset.cpus");
    limits.cpuset = std::string(trim(list));
    limits.cpuset_cpus = count_cpu_list(list);
    if (limits.cpuset_cpus) break;
  }
  return limits;
}

std::vector<CgroupCpuLevel> CgroupFs::cpu_levels(const CgroupPlace& place) const {
  std::vector<CgroupCpuLevel> found;
  for (const CgroupDir& level : levels_up(place.cpu)) {
    auto quota = quota_of(level);
    if (!quota && !found.empty()) continue;
    found.push_back({level.path, quota, cpu_stat_of(level)});
  }
  return found;
}

std::optional<int64_t> CgroupFs::usage_ns(const CgroupPlace& place) const {
  if (place.cpuacct.dir.empty()) return {};
  if (!place.cpuacct.v2) return parse_i64(text_of(place.cpuacct.dir, "cpuacct.usage"));
  auto usage_us = parse_i64(field_after(text_of(place.cpuacct.dir, "cpu.stat"), "usage_usec"));
  if (!usage_us || *usage_us > INT64_MAX / kNsPerUs) return {};
  return *usage_us * kNsPerUs;
}

std::optional<uint64_t> CgroupFs::memory_bytes(const CgroupPlace& place) const {
  if (place.memory.dir.empty()) return {};
  const char* file = place.memory.v2 ? "memory.current" : "memory.usage_in_bytes";
  return parse_u64(text_of(place.memory.dir, file));
}

}  // namespace assay::os
