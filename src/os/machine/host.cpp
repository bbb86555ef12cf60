#include "os/machine/host.h"

#include <algorithm>
#include <set>
#include <utility>

#include <sys/utsname.h>
#include <unistd.h>

#include "os/text_fields.h"

namespace assay::os {
namespace {

constexpr uint64_t kBytesPerKib = 1024;

std::string first_line(const std::string& path) {
  std::string text = read_text_file(path).value_or("");
  return std::string(trim(std::string_view(text).substr(0, text.find('\n'))));
}

uint64_t kib_field(std::string_view text, std::string_view key) {  // "MemTotal:  16 kB"
  std::string_view value = field_after(text, key);
  return parse_u64(value.substr(0, value.find(' '))).value_or(0) * kBytesPerKib;
}

// One of "always [madvise] never" stands in brackets.
std::string bracketed(const std::string& text) {
  size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return text;
  return text.substr(open + 1, close - open - 1);
}

std::string unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

std::string cpu_model(std::string_view cpuinfo) {
  for (const char* key : {"model name", "cpu model", "Model", "Processor"}) {
    std::string_view model = field_after(cpuinfo, key);
    if (!model.empty()) return std::string(model);
  }
  // ARM gives only numbers.
  std::string_view implementer = field_after(cpuinfo, "CPU implementer");
  if (implementer.empty()) return "";
  return fmt::format("implementer {} part {}", implementer, field_after(cpuinfo, "CPU part"));
}

// A core is a distinct pair of package and core number.
uint32_t physical_cores(std::string_view cpuinfo) {
  std::set<std::pair<std::string, std::string>> cores;
  std::string package;
  for (std::string_view line : split(cpuinfo, '\n')) {
    if (line.starts_with("physical id")) package = field_after(line, "physical id");
    if (line.starts_with("core id")) cores.emplace(package, field_after(line, "core id"));
  }
  return static_cast<uint32_t>(cores.size());
}

std::string virtualisation(std::string_view cpuinfo, const std::string& root) {
  std::string type = first_line(root + "/sys/hypervisor/type");
  std::string vendor = first_line(root + "/sys/class/dmi/id/sys_vendor");
  std::string product = first_line(root + "/sys/class/dmi/id/product_name");
  auto flags = split_words(field_after(cpuinfo, "flags"));
  bool guest = std::ranges::find(flags, "hypervisor") != flags.end() || !type.empty();
  if (!guest && (vendor == "QEMU" || product.find("Virtual") != std::string::npos)) guest = true;
  if (!guest) return cpuinfo.empty() ? "" : "none";
  std::string name = !type.empty() ? type : vendor;
  if (!product.empty()) name += (name.empty() ? "" : " ") + product;
  return name.empty() ? "virtual machine" : "virtual machine (" + name + ")";
}

}  // namespace

Host read_host(const ProcFs& proc, const std::string& root) {
  Host host;
  utsname name{};
  if (::uname(&name) == 0) host.architecture = name.machine;
  host.kernel = first_line(proc.root() + "/sys/kernel/osrelease");
  host.hostname = first_line(proc.root() + "/sys/kernel/hostname");
  std::string release = read_text_file(root + "/etc/os-release").value_or("");
  std::ranges::replace(release, '=', ' ');
  host.distribution = unquoted(field_after(release, "PRETTY_NAME"));

  std::string cpuinfo = read_text_file(proc.root() + "/cpuinfo").value_or("");
  host.cpu_model = cpu_model(cpuinfo);
  host.cpus_physical = physical_cores(cpuinfo);
  host.cpus_online =
      count_cpu_list(first_line(root + "/sys/devices/system/cpu/online")).value_or(0);
  if (host.cpus_online == 0) {
    auto lines = split(cpuinfo, '\n');
    host.cpus_online = static_cast<uint32_t>(std::ranges::count_if(
        lines, [](std::string_view line) { return line.starts_with("processor"); }));
  }
  host.virtualisation = virtualisation(cpuinfo, root);

  std::string meminfo = read_text_file(proc.root() + "/meminfo").value_or("");
  host.memory_bytes = kib_field(meminfo, "MemTotal");
  host.swap_bytes = kib_field(meminfo, "SwapTotal");
  host.clocksource =
      first_line(root + "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  host.huge_pages = bracketed(first_line(root + "/sys/kernel/mm/transparent_hugepage/enabled"));
  return host;
}

UsableCpus usable_cpus(pid_t pid, const Host& host, const ProcFs& proc, const CgroupFs& cgroups) {
  UsableCpus usable;
  usable.cpus = host.cpus_online;
  usable.bound_by = "host";
  auto bind = [&usable](double cpus, const char* by) {
    if (cpus <= 0 || (usable.cpus > 0 && cpus >= usable.cpus)) return;
    usable.cpus = cpus;
    usable.bound_by = by;
  };
  if (auto place = cgroups.find(pid)) usable.limits = cgroups.limits(*place);
  // The cpuset comes first: the kernel narrows the affinity to it, so it is the cause of both.
  if (usable.limits.cpuset_cpus) bind(*usable.limits.cpuset_cpus, "cpuset");
  if (auto status = proc.status(pid)) {
    usable.affinity_list = status->cpus_allowed;
    usable.affinity = count_cpu_list(status->cpus_allowed).value_or(0);
    bind(usable.affinity, "affinity");
  }
  if (usable.limits.quota_cpus) bind(*usable.limits.quota_cpus, "quota");
  return usable;
}

int64_t start_utc_ns(uint64_t start_ticks, int64_t utc_now_ns, int64_t boottime_now_ns) {
  const int64_t ns_per_tick = kNsPerSecond / ::sysconf(_SC_CLK_TCK);
  int64_t since_boot_ns = 0;
  if (__builtin_mul_overflow(start_ticks, ns_per_tick, &since_boot_ns)) return 0;
  return utc_now_ns - boottime_now_ns + since_boot_ns;
}

}  // namespace assay::os
