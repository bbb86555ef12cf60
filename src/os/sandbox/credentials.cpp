#include "os/sandbox/credentials.h"

#include <charconv>
#include <sstream>

#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/text_fields.h"

namespace assay::os {
namespace {

// CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: they open every file, whoever asks.
constexpr uint32_t kReadsEverything = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;

struct CapabilitySets {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};

  bool read() { return ::syscall(SYS_capget, &header, data) == 0; }
  bool write() { return ::syscall(SYS_capset, &header, data) == 0; }
};

// The last number of "Uid:\t1000\t1000\t1000\t1000", which is the file-system one.
bool last_number(std::string_view line, uint32_t& value) {
  while (!line.empty() && (line.back() < '0' || line.back() > '9')) line.remove_suffix(1);
  size_t begin = line.find_last_not_of("0123456789");
  std::string_view digits = line.substr(begin == std::string_view::npos ? 0 : begin + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc{} && end == digits.data() + digits.size() && !digits.empty();
}

// The current ids; asking with an impossible one changes nothing.
uid_t file_system_user() {
  return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1)));
}
gid_t file_system_group() {
  return static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1)));
}

// The system call itself: glibc's function would change every thread of the process.
bool set_thread_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

}  // namespace

Result<Credentials> credentials_of(pid_t pid, const std::string& proc) {
  auto text = read_text_file(fmt::format("{}/{}/status", proc, pid));
  if (!text) return fail("process {} has ended", pid);
  Credentials found;
  bool has_uid = false, has_gid = false;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Uid:")) has_uid = last_number(line, found.uid);
    if (line.starts_with("Gid:")) has_gid = last_number(line, found.gid);
    if (!line.starts_with("Groups:")) continue;
    std::istringstream words(line.substr(7));
    for (gid_t group = 0; words >> group;) found.groups.push_back(group);
  }
  if (!has_uid || !has_gid) return fail("the user of process {} is not known", pid);
  return found;
}

ActAs::ActAs(const Credentials& wanted)
    : own_uid_(file_system_user()), own_gid_(file_system_group()) {
  holds_ = take_on(wanted);
}

bool ActAs::take_on(const Credentials& wanted) {
  if (wanted.uid == own_uid_ && own_uid_ == 0)
    return true;  // root's own programs: nothing to give up
  CapabilitySets sets;
  if (!sets.read()) return false;
  own_effective_low_ = sets.data[0].effective;
  bool may_change =
      (own_effective_low_ & 1u << CAP_SETUID) != 0 && (own_effective_low_ & 1u << CAP_SETGID) != 0;
  if (may_change) {
    int count = ::getgroups(0, nullptr);
    own_groups_.resize(static_cast<size_t>(std::max(0, count)));
    if (count > 0 && ::getgroups(count, own_groups_.data()) != count) return false;
    if (!set_thread_groups(wanted.groups)) return false;
    changed_groups_ = true;
    changed_user_ = true;
    ::setfsgid(wanted.gid);
    ::setfsuid(wanted.uid);
    if (file_system_user() != wanted.uid || file_system_group() != wanted.gid) return false;
  }
  // Without the right to change users the caller's own user stays, but only with that user's
  // rights.
  if ((own_effective_low_ & kReadsEverything) == 0) return true;
  changed_capabilities_ = true;
  return set_capabilities(own_effective_low_ & ~kReadsEverything);
}

bool ActAs::set_capabilities(uint32_t effective_low) {
  CapabilitySets sets;
  if (!sets.read()) return false;
  sets.data[0].effective = effective_low & sets.data[0].permitted;
  return sets.write();
}

ActAs::~ActAs() {
  if (changed_user_) {
    ::setfsuid(own_uid_);
    ::setfsgid(own_gid_);
  }
  // setfsuid(0) gives the file capabilities back by itself; the others need this call.
  if (changed_capabilities_) set_capabilities(own_effective_low_);
  if (changed_groups_) set_thread_groups(own_groups_);
}

}  // namespace assay::os
