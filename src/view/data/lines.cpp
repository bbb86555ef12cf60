// line_columns() and source_json(): where in the source the time goes.
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <unordered_map>

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_door.h"
#include "view/data/columns.h"
#include "view/queries.h"
#include "view/data/time_walk.h"

namespace assay::view {
namespace {

constexpr off_t kLargestSource = 8 << 20;
constexpr size_t kLongestLine = 2000;
constexpr size_t kHotFiles = 20;        // whose text goes into a single file
constexpr uint32_t kLinesAround = 150;  // the hottest line of each

using LineKey = std::pair<std::string_view, uint32_t>;
struct LineKeyHash {
  size_t operator()(const LineKey& key) const noexcept {
    return std::hash<std::string_view>()(key.first) ^ key.second * 0x9E3779B97F4A7C15ull;
  }
};

struct LineTime {
  std::string_view file;
  uint32_t line = 0;
  uint32_t function = 0;  // index into names
  int64_t cpu_self_ns = 0, cpu_total_ns = 0, off_self_ns = 0, off_total_ns = 0;
  uint32_t last_stack = 0;  // that counted it: a line that recurs in a stack counts once
};

class LineTable {
 public:
  explicit LineTable(const run::Contents& run) : run_(run), of_frame_(run.frames.size()) {
    for (size_t frame = 0; frame < run.frames.size() && frame < run.locations.size(); ++frame) {
      for (const model::Location& location : run.locations[frame]) {
        if (location.file.empty() || location.line == 0) continue;
        of_frame_[frame].push_back(intern(location));
      }
    }
  }

  void add(uint32_t stack, int64_t cpu_ns, int64_t off_ns) {
    bool leaf = true;
    for (uint32_t at = stack; at != 0;) {
      const model::StackNode& node = run_.stacks[at];
      if (node.frame.value < of_frame_.size()) {
        for (uint32_t index : of_frame_[node.frame.value]) {
          LineTime& line = lines_[index];
          if (leaf) {
            line.cpu_self_ns += cpu_ns;
            line.off_self_ns += off_ns;
          }
          leaf = false;
          if (line.last_stack == stack) continue;
          line.last_stack = stack;
          line.cpu_total_ns += cpu_ns;
          line.off_total_ns += off_ns;
        }
      }
      leaf = false;
      at = node.parent.value < at ? node.parent.value : 0;
    }
  }

  std::string columns() const;

  // The files with most time of their own, and the hottest line of each.
  std::vector<std::pair<std::string, uint32_t>> hottest(size_t most) const {
    struct File {
      int64_t self_ns = 0, hottest_ns = -1;
      uint32_t line = 1;
    };
    std::map<std::string_view, File> files;
    for (const LineTime& line : lines_) {
      int64_t ns = line.cpu_self_ns + line.off_self_ns;
      File& file = files[line.file];
      file.self_ns += ns;
      if (ns <= file.hottest_ns) continue;
      file.hottest_ns = ns;
      file.line = line.line;
    }
    std::vector<std::pair<std::string_view, File>> order(files.begin(), files.end());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.second.self_ns > b.second.self_ns;
    });
    std::vector<std::pair<std::string, uint32_t>> result;
    for (size_t i = 0; i < std::min(most, order.size()); ++i) {
      if (order[i].second.self_ns > 0) result.emplace_back(order[i].first, order[i].second.line);
    }
    return result;
  }

 private:
  uint32_t intern(const model::Location& location) {
    auto [it, added] =
        known_.try_emplace({location.file, location.line}, static_cast<uint32_t>(lines_.size()));
    if (added) {
      LineTime line;
      line.file = location.file;
      line.line = location.line;
      auto [name, fresh] =
          name_of_.try_emplace(location.function, static_cast<uint32_t>(names_.size()));
      if (fresh) names_.push_back(location.function);
      line.function = name->second;
      lines_.push_back(line);
    }
    return it->second;
  }

  const run::Contents& run_;
  std::vector<std::vector<uint32_t>> of_frame_;  // line indices, innermost first
  std::vector<LineTime> lines_;
  std::unordered_map<LineKey, uint32_t, LineKeyHash> known_;
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, uint32_t> name_of_;
};

std::string LineTable::columns() const {
  std::vector<const LineTime*> rows;
  for (const LineTime& line : lines_) {
    if (line.cpu_total_ns > 0 || line.off_total_ns > 0) rows.push_back(&line);
  }
  std::sort(rows.begin(), rows.end(), [](const LineTime* a, const LineTime* b) {
    return std::tie(a->file, a->line) < std::tie(b->file, b->line);
  });
  std::vector<std::string_view> files;
  std::vector<uint32_t> file, line, function;
  std::vector<uint64_t> cpu_self, cpu_total, off_self, off_total;
  for (const LineTime* row : rows) {
    if (files.empty() || files.back() != row->file) files.push_back(row->file);
    file.push_back(static_cast<uint32_t>(files.size() - 1));
    line.push_back(row->line);
    function.push_back(row->function);
    cpu_self.push_back(static_cast<uint64_t>(row->cpu_self_ns));
    cpu_total.push_back(static_cast<uint64_t>(row->cpu_total_ns));
    off_self.push_back(static_cast<uint64_t>(row->off_self_ns));
    off_total.push_back(static_cast<uint64_t>(row->off_total_ns));
  }
  Columns table("lines");
  table.add_strings("files", files);
  table.add_strings("functions", names_);
  table.add("file", file);
  table.add("line", line);
  table.add("function", function);
  table.add("cpu_self", cpu_self);
  table.add("cpu_total", cpu_total);
  table.add("off_self", off_self);
  table.add("off_total", off_total);
  return table.finish();
}

// A run is a foreign file: of the paths it names only what looks like source is read, so that a
// page which is passed on holds no other file of this machine.
bool looks_like_source(const std::filesystem::path& path) {
  static const std::vector<std::string> kEndings{".c",  ".cc",  ".cpp", ".cxx", ".c++",  ".h",
                                                 ".hh", ".hpp", ".hxx", ".inl", ".ipp",  ".tcc",
                                                 ".rs", ".go",  ".py",  ".js",  ".ts",   ".rb",
                                                 ".d",  ".zig", ".S",   ".s",   ".java", ".swift"};
  std::string ending = path.extension().string();
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

std::vector<std::string> lines_on_disk(const std::string& file) {
  std::filesystem::path path(file);
  if (!path.is_absolute() || !looks_like_source(path)) return {};
  auto found = file_door().open(file, Purpose::source);
  // No link may lead from source to something else.
  if (!found || !looks_like_source(found->real_path)) return {};
  struct stat status {};
  if (::fstat(found->fd.get(), &status) != 0 || status.st_size > kLargestSource) return {};
  std::string text(static_cast<size_t>(status.st_size), '\0');
  ssize_t got = ::pread(found->fd.get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  std::vector<std::string> lines;
  std::istringstream in(std::move(text));
  for (std::string line; std::getline(in, line);) {
    if (line.size() > kLongestLine) line.resize(kLongestLine);
    lines.push_back(std::move(line));
  }
  return lines;
}

Result<LineTable> measured_lines(RunIndex& run, const Selection& selection) {
  const run::Contents& contents = run.contents();
  std::vector<int64_t> cpu_ns(contents.stacks.size()), off_ns(contents.stacks.size());
  auto status =
      selection.rows(run).for_each_sample(selection.range(), [&](const model::Sample& sample) {
        if (sample.thread.value >= contents.threads.size() || sample.stack.value >= cpu_ns.size() ||
            !selection.has_thread(sample.thread) ||
            !selection.has_node(run.node_of(sample.stack))) {
          return;
        }
        cpu_ns[sample.stack.value] += sample.weight_ns;
      });
  if (!status) return std::unexpected(status.error());
  status = walk_waits(run, selection, [&](const Piece& piece) {
    if (!piece.wait || piece.state < kFirstBlocked || !selection.has_node(piece.node)) return;
    if (piece.wait->stack.value < off_ns.size()) off_ns[piece.wait->stack.value] += piece.ns();
  });
  if (!status) return std::unexpected(status.error());
  LineTable table(contents);
  for (uint32_t stack = 1; stack < cpu_ns.size(); ++stack) {
    if (cpu_ns[stack] > 0 || off_ns[stack] > 0) table.add(stack, cpu_ns[stack], off_ns[stack]);
  }
  return table;
}

}  // namespace

Result<std::string> line_columns(RunIndex& run, const Selection& selection) {
  auto table = measured_lines(run, selection);
  if (!table) return std::unexpected(table.error());
  return table->columns();
}

Result<std::string> hot_source_json(RunIndex& run, const Selection& selection) {
  auto table = measured_lines(run, selection);
  if (!table) return std::unexpected(table.error());
  std::string list = "[";
  for (const auto& [file, line] : table->hottest(kHotFiles)) {
    uint32_t from = line > kLinesAround ? line - kLinesAround : 1;
    auto text = source_json(run, selection.rows(run), file, from, line + kLinesAround);
    if (!text) return std::unexpected(text.error());
    list += (list.size() > 1 ? "," : "") + *text;
  }
  return list + "]";
}

Result<std::string> source_json(const RunIndex& run, const run::Reader& reader,
                                const std::string& file, uint32_t from, uint32_t to) {
  bool named = false;
  for (const auto& locations : run.contents().locations) {
    for (const model::Location& location : locations) named = named || location.file == file;
  }
  if (!named) return fail("the run names no file {}", file);
  nlohmann::ordered_json json{{"file", file}, {"from", from}};
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  bool in_run = false;
  std::vector<std::string> disk;
  if (run.reads_local_source()) disk = lines_on_disk(file);
  for (uint32_t number = from; number <= to; ++number) {
    auto text = reader.source_line(file, number);
    if (!text) return std::unexpected(text.error());
    in_run = in_run || !text->empty();
    if (text->empty() && number >= 1 && number <= disk.size()) *text = disk[number - 1];
    lines.push_back(*text);
  }
  json["origin"] = in_run ? "run" : disk.empty() ? "none" : "disk";
  json["lines"] = std::move(lines);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace assay::view
