#include "capture/counters/facts.h"

#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "os/process/binary_reader.h"

namespace assay::capture {
namespace {

// Facts of one scope; an empty value is unknown and not written.
class FactList {
 public:
  explicit FactList(std::string scope) : scope_(std::move(scope)) {}
  void text(const char* key, const std::string& value) {
    if (!value.empty()) facts_.push_back({scope_, key, value});
  }
  void number(const char* key, uint64_t value) {
    if (value > 0) facts_.push_back({scope_, key, std::to_string(value)});
  }
  void yes_no(const char* key, bool value) {
    facts_.push_back({scope_, key, value ? "yes" : "no"});
  }
  std::vector<model::Fact> take() { return std::move(facts_); }

 private:
  std::string scope_;
  std::vector<model::Fact> facts_;
};

std::string scope_of(model::ProcessId id) {
  return fmt::format("process {}", id.value);
}

std::string utc_text(int64_t utc_ns) {
  time_t seconds = utc_ns / kNsPerSecond;
  tm parts{};
  char text[32];
  if (::gmtime_r(&seconds, &parts) == nullptr) return "";
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

void append(std::vector<model::Fact>& all, std::vector<model::Fact> more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

std::vector<model::Fact> host_facts(const os::Host& host) {
  FactList facts("host");
  facts.text("kernel", host.kernel);
  facts.text("architecture", host.architecture);
  facts.text("hostname", host.hostname);
  facts.text("distribution", host.distribution);
  facts.text("cpu_model", host.cpu_model);
  facts.number("cpus_online", host.cpus_online);
  facts.number("cpu_cores", host.cpus_physical);
  facts.number("memory_bytes", host.memory_bytes);
  facts.number("swap_bytes", host.swap_bytes);
  facts.text("virtualisation", host.virtualisation);
  facts.text("clocksource", host.clocksource);
  facts.text("transparent_huge_pages", host.huge_pages);
  return facts.take();
}

std::vector<model::Fact> limit_facts(model::ProcessId id, const os::UsableCpus& usable) {
  FactList facts(scope_of(id));
  if (usable.cpus > 0) {
    facts.text("usable_cpus", fmt::format("{:g}", usable.cpus));
    facts.text("usable_cpus_bound_by", usable.bound_by);
  }
  facts.text("affinity", usable.affinity_list);
  facts.text("cpuset", usable.limits.cpuset);
  if (usable.limits.quota_cpus) {
    facts.text("cgroup_quota_cpus", fmt::format("{:g}", *usable.limits.quota_cpus));
    facts.text("cgroup_quota_set_by", usable.limits.quota_path);
  }
  if (usable.limits.memory_bytes) {
    facts.number("cgroup_memory_limit_bytes", *usable.limits.memory_bytes);
  }
  return facts.take();
}

std::vector<model::Fact> binary_facts(model::ProcessId id, const os::BinaryFacts& binary) {
  FactList facts(scope_of(id));
  facts.text("build_id", binary.build_id);
  facts.text("linkage", os::linkage_name(binary.linkage));
  facts.yes_no("stripped", binary.stripped());
  facts.yes_no("debug_info", binary.has_debug_info);
  if (binary.has_debug_link) facts.yes_no("debug_info_in_other_file", true);
  facts.text("compiler", binary.compiler);
  facts.text("compiler_flags", binary.flags);
  facts.text("build", os::optimisation_name(binary.optimisation));
  facts.number("units_read", binary.units_read);
  facts.number("units_optimised", binary.units_optimised);
  facts.number("units_debug", binary.units_debug);
  facts.text("frame_pointers", os::frame_pointers_name(binary.frame_pointers));
  facts.text("sanitizers", joined(binary.sanitizers));
  if (binary.debug_containers) facts.yes_no("debug_containers", true);
  facts.text("debug_info_limit", binary.limit);
  return facts.take();
}

std::vector<model::Fact> image_facts(model::ProcessId id, const os::RunningImage& image) {
  FactList facts(scope_of(id));
  facts.text("exe", image.path);
  facts.yes_no("rebuilt_after_start", image.replaced);
  if (image.replaced) facts.text("build_id_on_disk", image.file_build_id);
  if (image.deleted) facts.yes_no("exe_deleted", true);
  return facts.take();
}

std::vector<model::Fact> read_process_facts(model::ProcessId id, pid_t pid, const os::Host& host,
                                            const os::ProcFs& proc, const os::CgroupFs& cgroups) {
  std::vector<model::Fact> all;
  if (auto image = os::read_running_image(pid, proc)) append(all, image_facts(id, *image));
  if (auto exe = os::open_program(pid, proc.root())) {
    if (auto binary = os::binary_reader().facts(exe->get())) append(all, binary_facts(id, *binary));
  }
  append(all, limit_facts(id, os::usable_cpus(pid, host, proc, cgroups)));
  FactList facts(scope_of(id));
  if (auto place = cgroups.find(pid)) facts.text("cgroup", place->name);
  if (auto stat = proc.stat(pid)) {
    facts.text("started_utc",
               utc_text(os::start_utc_ns(stat->start_ticks, utc_ns(), boottime_ns())));
  }
  append(all, facts.take());
  return all;
}

}  // namespace assay::capture
