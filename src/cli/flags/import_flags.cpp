#include "cli/flags/import_flags.h"

#include "base/units.h"
#include "formats/format.h"
#include "session/record/cache_dir.h"

namespace assay::cli {

void ImportFlags::add_to(CLI::App& parser, const std::string& heading) {
  auto asking = formats::formats_with(
      formats::read_formats(), [](const formats::FormatSpec& one) { return one.asks_meaning; });
  parser
      .add_option("--unit", unit_, "What the numbers of folded stacks count: samples, ns, us or ms")
      ->check(CLI::IsMember({"samples", "ns", "us", "ms"}))
      ->type_name("UNIT")
      ->group(heading);
  parser
      .add_option("--as", meaning_,
                  fmt::format("What the stacks of a {} file count, if it does not say:\n"
                              "cpu (time on the CPU) or off (time blocked)",
                              formats::format_list(asking)))
      ->check(CLI::IsMember({"cpu", "off"}))
      ->type_name("WHAT")
      ->group(heading);
  parser.add_option("--freq", frequency_, "Samples per second, where the file does not say")
      ->check(CLI::Range(0.001, 1e9))
      ->type_name("HZ")
      ->group(heading);
  parser.add_flag("--no-names", no_names_, "Do not look up function names in this machine's files")
      ->group(heading);
}

void ImportFlags::fill(session::ImportOptions& options) const {
  options.cache_dir = session::default_cache_dir();
  options.symbolize = !no_names_;
  options.read.unit_ns = unit_ == "ns"   ? 1
                         : unit_ == "us" ? kNsPerUs
                         : unit_ == "ms" ? kNsPerMs
                                         : 0;
  options.read.unit_said = !unit_.empty();
  if (meaning_ == "cpu") options.read.meaning = formats::Meaning::cpu;
  if (meaning_ == "off") options.read.meaning = formats::Meaning::off;
  if (frequency_ > 0) options.read.period_ns = static_cast<int64_t>(1e9 / frequency_);
}

}  // namespace assay::cli
