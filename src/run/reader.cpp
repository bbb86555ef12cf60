#include "run/reader.h"

#include <algorithm>

#include "run/blocks/block_stream.h"
#include "run/blocks/blocks_ahead.h"
#include "run/file/open_file.h"
#include "run/file/sqlite.h"
#include "run/load_contents.h"

namespace assay::run {
namespace {

class FileReader : public Reader {
 public:
  FileReader(Database database, std::shared_ptr<const Contents> contents)
      : database_(std::move(database)), contents_(std::move(contents)) {}

  const Contents& contents() const override { return *contents_; }

  Result<std::unique_ptr<Reader>> twin() const override {
    auto database = open_again(database_);
    if (!database) return std::unexpected(database.error());
    return std::make_unique<FileReader>(std::move(*database), contents_);
  }

  Result<uint64_t> row_count() const override {
    auto rows = database_.query_int(
        "SELECT (SELECT total(count) FROM sample_block) + (SELECT total(count) FROM wait_block)");
    if (!rows) return damaged(database_.path(), rows.error().what);
    return static_cast<uint64_t>(std::max<int64_t>(0, *rows));
  }

  Result<void> for_each_sample(
      const TimeRange& range,
      const std::function<void(const model::Sample&)>& visit) const override {
    return for_each<model::Sample>(range, visit);
  }
  Result<void> for_each_wait(const TimeRange& range,
                             const std::function<void(const model::Wait&)>& visit) const override {
    return for_each<model::Wait>(range, visit);
  }

  Result<void> for_each_heap_alloc(
      const TimeRange& range,
      const std::function<void(const model::HeapAlloc&)>& visit) const override {
    return for_each<model::HeapAlloc>(range, visit);
  }
  Result<void> for_each_heap_free(
      const TimeRange& range,
      const std::function<void(const model::HeapFree&)>& visit) const override {
    return for_each<model::HeapFree>(range, visit);
  }

  Result<std::vector<model::Point>> points(model::SeriesId series) const override {
    if (auto loaded = load_points(); !loaded) return std::unexpected(loaded.error());
    auto [first, last] = std::equal_range(
        points_.begin(), points_.end(), model::Point{.series = series},
        [](const model::Point& a, const model::Point& b) { return a.series < b.series; });
    return std::vector<model::Point>(first, last);
  }

  Result<std::string> source_line(const std::string& file, uint32_t line) const override {
    auto statement =
        Statement::prepare(database_, "SELECT text FROM source_line WHERE file = ? AND line = ?");
    if (!statement) return damaged(database_.path(), statement.error().what);
    auto row = statement->bind(file).bind(line).next();
    if (!row) return damaged(database_.path(), row.error().what);
    return *row ? statement->text(0) : std::string();
  }

 private:
  template <class Row>
  Result<void> for_each(const TimeRange& range,
                        const std::function<void(const Row&)>& visit) const {
    BlockStream<Row> stream(database_, *contents_);
    if (auto started = stream.start(range); !started) return started;
    BlocksAhead<Row> blocks(stream);
    while (true) {
      if (range.stop && *range.stop)
        return fail("the request was cancelled");
      auto rows = blocks.next();
      if (!rows) return std::unexpected(rows.error());
      if (*rows == nullptr) return {};
      for (const Row& row : **rows) {
        if (in_range(row, range)) visit(row);
      }
    }
  }

  // All points at once, by series and time: they are stored as they came, and an index in the file
  // would cost as much as the points.
  Result<void> load_points() const {
    if (points_loaded_) return {};
    points_.clear();
    auto statement = Statement::prepare(database_, "SELECT series, time_ns, value FROM point");
    if (!statement) return damaged(database_.path(), statement.error().what);
    while (true) {
      auto row = statement->next();
      if (!row) return damaged(database_.path(), row.error().what);
      if (!*row) break;
      uint64_t series = static_cast<uint64_t>(statement->i64(0));
      if (series >= contents_->series.size()) {
        return damaged(database_.path(), "a point belongs to no series");
      }
      points_.push_back({{static_cast<uint32_t>(series)}, statement->i64(1), statement->i64(2)});
    }
    std::stable_sort(points_.begin(), points_.end(),
                     [](const model::Point& a, const model::Point& b) {
                       return std::pair(a.series, a.time) < std::pair(b.series, b.time);
                     });
    points_loaded_ = true;
    return {};
  }

  Database database_;
  std::shared_ptr<const Contents> contents_;
  mutable std::vector<model::Point> points_;  // loaded on the first call of points()
  mutable bool points_loaded_ = false;
};

Result<std::unique_ptr<Reader>> make_reader(Result<Database> database) {
  if (!database) return std::unexpected(database.error());
  auto contents = load_contents(*database);
  if (!contents) return std::unexpected(contents.error());
  return std::make_unique<FileReader>(std::move(*database),
                                      std::make_shared<const Contents>(std::move(*contents)));
}

}  // namespace

Result<std::unique_ptr<Reader>> Reader::open(const std::string& path) {
  return make_reader(open_run_file(path));
}

Result<std::unique_ptr<Reader>> Reader::read_back(UniqueFd file, const std::string& path) {
  return make_reader(open_run_file(std::move(file), path));
}

}  // namespace assay::run
