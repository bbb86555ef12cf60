#include "os/machine/cpu_watch.h"

#include <charconv>

#include <linux/netlink.h>
#include <sys/socket.h>

#include "os/machine/capabilities.h"
#include "os/text_fields.h"

namespace assay::os {
namespace {

constexpr const char* kOnlineList = "/sys/devices/system/cpu/online";
constexpr std::string_view kPlace = "@/devices/system/cpu/cpu";

std::set<int> online_cpus() {
  auto text = read_text_file(kOnlineList);
  std::vector<int> list = text ? parse_cpu_list(*text) : std::vector<int>{};
  return {list.begin(), list.end()};
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
    std::set<int> now = online_cpus();
    return cpu_changes(online_, told, now.empty() ? online_ : now);
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
  std::set<int> online_;
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

std::vector<CpuChange> cpu_changes(std::set<int>& online, const std::vector<CpuChange>& told,
                                   const std::set<int>& now) {
  std::vector<CpuChange> found;
  auto take = [&](const CpuChange& change) {
    if (online.contains(change.cpu) == change.online) return;  // known already
    if (change.online) online.insert(change.cpu);
    if (!change.online) online.erase(change.cpu);
    found.push_back(change);
  };
  for (const CpuChange& change : told) take(change);
  std::set<int> before = online;
  for (int cpu : before)
    if (!now.contains(cpu)) take({cpu, false});
  for (int cpu : now) take({cpu, true});
  return found;
}

std::unique_ptr<CpuWatch> CpuWatch::open() {
  return std::make_unique<KernelWatch>();
}

}  // namespace assay::os
