#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/selection_flags.h"
#include "cli/output/printable_cell.h"
#include "cli/output/terminal.h"
#include "report/printable.h"
#include "run/sql/sql.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay sql run.assay \"SELECT * FROM thread\"\n"
    "  assay sql run.assay \"SELECT leaf, sum(weight_ns)/1e6 AS ms FROM samples GROUP BY leaf "
    "ORDER BY 2 DESC LIMIT 10\"\n"
    "  assay sql run.assay \"SELECT thread, syscall_name, count(*), sum(duration_ns)/1e6 AS ms\n"
    "                        FROM waits GROUP BY 1, 2 ORDER BY ms DESC\"\n"
    "  assay sql run.assay --format tsv \"SELECT time_s, duration_ns, stack_text(stack) FROM waits "
    "WHERE time_s < 1\"\n"
    "\n"
    "All tables are described in docs/run-format.md; samples and waits are decoded on the fly.";

using Row = std::vector<std::string>;

constexpr int kWidestCell = 60;  // names of functions may have thousands of letters

// Columns as wide as their widest cell, which is cut in its middle where it is longer than
// kWidestCell. Rows are kept until the end; tsv and json stream, and cut nothing.
class AlignedTable {
 public:
  void header(Row row) { add(std::move(row)); }
  void add(Row row) {
    for (std::string& cell : row) cell = report::fitted(cell, kWidestCell);
    widths_.resize(std::max(widths_.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths_[i] = std::max(widths_[i], display_width(row[i]));
    rows_.push_back(std::move(row));
  }
  void print() const {
    for (size_t r = 0; r < rows_.size(); ++r) {
      std::string line;
      for (size_t i = 0; i < rows_[r].size(); ++i) {
        line += rows_[r][i];
        if (i + 1 < rows_[r].size())
          line += std::string(widths_[i] - display_width(rows_[r][i]) + 2, ' ');
      }
      say(stdout, "{}\n", line);
      if (r == 0) print_rule();
    }
  }

 private:
  void print_rule() const {
    std::string line;
    for (size_t i = 0; i < widths_.size(); ++i) {
      for (size_t c = 0; c < widths_[i]; ++c) line += "─";
      if (i + 1 < widths_.size()) line += "  ";
    }
    say(stdout, "{}\n", line);
  }
  std::vector<size_t> widths_;
  std::vector<Row> rows_;
};

Row cells(std::span<const run::SqlValue> values) {
  Row row;
  for (const run::SqlValue& value : values) row.push_back(cell_text(value));
  return row;
}

std::string tsv_line(const Row& row) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) line += (i > 0 ? "\t" : "") + row[i];
  return line;
}

nlohmann::ordered_json to_json(const run::SqlValue& value) {
  if (auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (auto* real = std::get_if<double>(&value)) return *real;
  if (auto* text = std::get_if<std::string>(&value)) return *text;
  if (auto* blob = std::get_if<std::vector<uint8_t>>(&value))
    return fmt::format("<{} bytes>", blob->size());
  return nullptr;
}

class SqlCommand final : public Command {
 public:
  explicit SqlCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    parser->add_option("run", run_path_, "Run file")->required()->type_name("RUN");
    parser->add_option("query", query_, "One SELECT")->required()->type_name("QUERY");
    parser
        ->add_option("--format", format_, "table, tsv or json: one object per line (default table)")
        ->check(CLI::IsMember({"table", "tsv", "json"}))
        ->type_name("FORMAT");
    parser->add_flag("--json", json_, "Same as --format json");
    selection_.add_to(*parser);
  }

  int run(const Invocation&) override {
    if (json_) format_ = "json";
    auto selection = selection_.selection();
    if (!selection) return print_error(selection.error()), kWrongUsage;
    return confined(reading({run_path_}), [&] { return ask(*selection); });
  }

 private:
  int ask(const run::Selection& selection) {
    AlignedTable table;
    std::vector<std::string> names;
    run::SqlSink sink;
    sink.columns = [&](std::span<const std::string> columns) {
      names.assign(columns.begin(), columns.end());
      if (format_ == "table") table.header(names);
      if (format_ == "tsv") say(stdout, "{}\n", tsv_line(names));
    };
    sink.row = [&](std::span<const run::SqlValue> values) { return emit(values, names, table); };
    auto rows = run::run_sql(run_path_, query_, sink, selection);
    if (format_ == "table" && !names.empty()) table.print();
    if (!rows) return print_error(rows.error());
    return kDone;
  }

  // False when the reader of our output is gone.
  bool emit(std::span<const run::SqlValue> values, const std::vector<std::string>& names,
            AlignedTable& table) const {
    if (format_ == "table") {
      table.add(cells(values));
      return true;
    }
    std::string line;
    if (format_ == "tsv") {
      line = tsv_line(cells(values));
    } else {
      nlohmann::ordered_json object;
      for (size_t i = 0; i < values.size(); ++i) object[names[i]] = to_json(values[i]);
      line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    line += '\n';
    return fwrite(line.data(), 1, line.size(), stdout) == line.size();
  }

  std::string run_path_;
  std::string query_;
  std::string format_ = "table";
  bool json_ = false;
  SelectionFlags selection_;
};

}  // namespace

std::unique_ptr<Command> make_sql_command(CLI::App& app) {
  return std::make_unique<SqlCommand>(app.add_subcommand("sql", "Query a run with SQL"));
}

}  // namespace assay::cli
