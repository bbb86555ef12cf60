#include "os/machine/cpu_watch.h"

#include <algorithm>
#include <charconv>

#include <linux/netlink.h>
#include <sys/socket.h>

#include "os/machine/capabilities.h"
#include "os/text_fields.h"

namespace assay::os {
namespace {

constexpr const char* kOnlineList = "/sys/devices/system/cpu/online";
constexpr std::string_view kPlace = "@/devices/system/cpu/cpu";

std::vector<int> online_cpus() {
  auto text = read_text_file(kOnlineList);
  return text ? parse_cpu_list(*text) : std::vector<int>{};
}

class KernelWatch final : public CpuWatch {
 public:
  KernelWatch() : online_(online_cpus()) {
    UniqueFd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                             NETLINK_KOBJECT_UEVENT));
    sockaddr_nl group{};
    group.nl_family = AF_NETLINK;
    group.nl_groups = 1;
    if (socket.valid() &&
        ::bind(socket.get(), reinterpret_cast<sockaddr*>(&group), sizeof group) == 0)
      socket_ = std::move(socket);
  }

  std::vector<CpuChange> changes() override {
    std::vector<CpuChange> told = told_changes();
    std::vector<int> now = online_cpus();
    if (now.empty()) return told;
    // What was told is part of the difference; the rest was not told of.
    for (const CpuChange& change : cpu_changes(online_, now)) {
      bool known = std::ranges::any_of(
          told, [&](const CpuChange& other) { return other.cpu == change.cpu; });
      if (!known) told.push_back(change);
    }
    online_ = std::move(now);
    return told;
  }

 private:
  std::vector<CpuChange> told_changes() const {
    std::vector<CpuChange> told;
    char buffer[4096];
    sockaddr_nl sender{};
    socklen_t size = sizeof sender;
    while (socket_.valid()) {
      ssize_t got = ::recvfrom(socket_.get(), buffer, sizeof buffer, 0,
                               reinterpret_cast<sockaddr*>(&sender), &size);
      if (got <= 0) break;
      if (sender.nl_pid != 0) continue;  // not of the kernel
      CpuChange change = cpu_change_of({buffer, static_cast<size_t>(got)});
      if (change.cpu >= 0) told.push_back(change);
    }
    return told;
  }

  UniqueFd socket_;
  std::vector<int> online_;
};

}  // namespace

CpuChange cpu_change_of(std::string_view uevent) {
  CpuChange none{-1, false};
  uevent = uevent.substr(0, uevent.find('\0'));
  size_t at = uevent.find(kPlace);
  if (at == uevent.npos) return none;
  std::string_view action = uevent.substr(0, at), number = uevent.substr(at + kPlace.size());
  if (action != "online" && action != "offline") return none;
  CpuChange change{-1, action == "online"};
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), change.cpu);
  bool whole = error == std::errc() && end == number.data() + number.size() && change.cpu >= 0;
  return whole ? change : none;
}

std::vector<CpuChange> cpu_changes(const std::vector<int>& before, const std::vector<int>& now) {
  std::vector<CpuChange> found;
  auto has = [](const std::vector<int>& list, int cpu) {
    return std::ranges::find(list, cpu) != list.end();
  };
  for (int cpu : before)
    if (!has(now, cpu)) found.push_back({cpu, false});
  for (int cpu : now)
    if (!has(before, cpu)) found.push_back({cpu, true});
  return found;
}

std::unique_ptr<CpuWatch> CpuWatch::open() {
  return std::make_unique<KernelWatch>();
}

}  // namespace assay::os
