#include "session/import/import.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>

#include <fcntl.h>

#include "base/file_door.h"
#include "base/private_file.h"
#include "formats/format.h"
#include "formats/import/run_builder.h"
#include "session/import/import_http.h"
#include "session/import/import_names.h"
#include "session/import/import_perf_data.h"
#include "target/pools.h"

namespace assay::session {
namespace {

using formats::FormatSpec;
using formats::Input;
using formats::RunBuilder;

constexpr size_t kMostDownload = size_t{1} << 30;

constexpr std::string_view kRunMagic("SQLite format 3\0", 16);

Result<Input> open_input(const std::string& name) {
  if (name.starts_with("https://")) {
    return fail_with_remedy(fmt::format("{}: TLS is not supported", name),
                            fmt::format("curl -sS '{}' | assay import - -o RUN", name));
  }
  if (!is_http_url(name)) return Input::open(name);
  auto bytes = http_get(name, kMostDownload);
  if (!bytes) return std::unexpected(bytes.error());
  return Input::of_bytes(name, std::move(*bytes));
}

Result<void> check_place(const ImportOptions& options) {
  std::error_code error;
  auto status = std::filesystem::status(options.output, error);
  if (!std::filesystem::exists(status)) return {};
  if (!std::filesystem::is_regular_file(status)) {
    return fail_with_remedy(fmt::format("{} is not a regular file", options.output),
                            "choose another name with -o");
  }
  for (const std::string& input : options.inputs) {
    if (std::filesystem::equivalent(input, options.output, error)) {
      return fail_with_remedy(fmt::format("{} is an input", options.output),
                              "choose another name with -o");
    }
  }
  if (options.overwrite) return {};
  return fail_with_remedy(fmt::format("{} exists already", options.output),
                          "choose another name with -o, or pass --overwrite to replace it", EEXIST);
}

class Importer {
 public:
  Importer(const ImportOptions& options, RunBuilder& builder, ImportNames& names)
      : options_(options), builder_(builder), names_(names) {}

  Result<void> read(const std::string& name) {
    auto input = open_input(name);
    if (!input) return std::unexpected(input.error());
    auto head = input->head();
    if (!head) return std::unexpected(head.error());
    if (head->empty()) {
      return fail_with_remedy(
          fmt::format("{} is empty: there is nothing to import", input->name()),
          "see whether the program that wrote it ended well; many write only at their end");
    }
    if (head->starts_with(kRunMagic)) {
      return fail_with_remedy(
          fmt::format("{} is a run already, or another database: there is nothing to import",
                      input->name()),
          "assay report " + name);
    }
    const FormatSpec* format =
        options_.format.empty() ? formats::detect_format(*head) : readable(options_.format);
    if (format == nullptr) {
      return fail_with_remedy(
          fmt::format("{}: no format that Assay reads was recognised at offset 0", input->name()),
          "name it with assay import --format " + formats::format_choice(formats::read_formats()));
    }
    if (auto fits = check_meaning(*format, *input); !fits) return fits;
    if (auto loaded = input->load(format->most_bytes); !loaded) return loaded;
    builder_.begin_file(input->name());
    formats_.emplace_back(format->name);
    uint64_t taken = builder_.taken();
    auto done = format->read(
        {*input, options_.read, builder_, [&](formats::PerfData& data) {
           return PerfDataImport(data, options_.read, builder_, names_, options_.cache_dir).run();
         }});
    if (done && builder_.taken() > taken) done = check_unit(input->name());
    // Giving back a large file's pages takes a while, so it is done in the background.
    closing_.emplace_back([gone = std::move(*input)] {});
    return done;
  }

  const std::vector<std::string>& formats() const { return formats_; }

 private:
  // Rows of one run add up, so they must be of one quantity.
  Result<void> check_unit(const std::string& name) {
    const std::string& unit = builder_.file_unit();
    if (!unit_) unit_ = {name, unit};
    if (unit_->second == unit) return {};
    auto text = [](const std::string& of) { return of.empty() ? "time" : of; };
    return fail_with_remedy(fmt::format("{} has {} and {} has {}: they do not add up to one run",
                                        unit_->first, text(unit_->second), name, text(unit)),
                            "import them apart; --freq HZ makes time of samples");
  }

  static const FormatSpec* readable(const std::string& name) {
    const FormatSpec* format = formats::find_format(name);
    return format != nullptr && format->read != nullptr ? format : nullptr;
  }

  Result<void> check_meaning(const FormatSpec& format, const Input& input) const {
    if (format.asks_meaning || options_.read.meaning == formats::Meaning::unsaid) return {};
    auto those = formats::formats_with(formats::read_formats(),
                                       [](const FormatSpec& one) { return one.asks_meaning; });
    return fail_with_remedy(
        fmt::format("{}: --as is for {} files; {} says itself what it holds", input.name(),
                    formats::format_list(those, " and "), format.name),
        "leave --as out");
  }

  const ImportOptions& options_;
  RunBuilder& builder_;
  ImportNames& names_;
  std::vector<std::string> formats_;
  std::optional<std::pair<std::string, std::string>> unit_;  // of the first file with any: its name
  std::vector<std::jthread> closing_;
};

std::string joined(const std::vector<std::string>& texts) {
  std::string line;
  for (const std::string& text : texts) {
    if (!line.ends_with(text)) line += (line.empty() ? "" : ", ") + text;
  }
  return line;
}

}  // namespace

Result<void> check_import(const ImportOptions& options) {
  if (auto free = check_place(options); !free) return free;
  if (std::ranges::count(options.inputs, "-") > 1) {
    return fail_with_remedy("standard input can be read only once", "give - once");
  }
  return run::Writer::check(options.output, true);
}

Result<ImportOutcome> import_files(const ImportOptions& options) {
  if (!asks_for_files()) {
    if (auto fine = check_import(options); !fine) return std::unexpected(fine.error());
  }
  auto made = PrivateFile::create(options.output,
                                  options.overwrite ? Existing::replace : Existing::refuse);
  if (!made) return std::unexpected(made.error());
  UniqueFd file(::fcntl(made->fd(), F_DUPFD_CLOEXEC, 0));
  if (!file.valid()) return fail_errno("cannot write {}", options.output);
  auto outcome = import_into(std::move(file), options);
  if (!outcome) return outcome;
  if (auto done = made->commit(); !done) return std::unexpected(done.error());
  return outcome;
}

Result<ImportOutcome> import_into(UniqueFd file, const ImportOptions& options) {
  model::RunInfo info;
  info.assay_version = ASSAY_VERSION;
  info.command_line = options.command_line;
  info.target = joined(options.inputs);
  info.backend = "import";
  auto writer = run::Writer::create_draft(std::move(file), options.output, info);
  RunBuilder builder(*writer, [](const std::string& name) { return target::pool_name(name); });
  ImportNames names(options.symbolize, options.cache_dir);
  Importer importer(options, builder, names);
  for (const std::string& input : options.inputs) {
    if (auto done = importer.read(input); !done) return std::unexpected(done.error());
  }
  names.name_frames(builder);
  info.backend = "import: " + joined(importer.formats());
  if (auto done = builder.finish(info); !done) return std::unexpected(done.error());
  return ImportOutcome{builder.samples(), builder.waits(), builder.heap_sums(), importer.formats()};
}

}  // namespace assay::session
