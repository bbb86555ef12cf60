#include "view/api.h"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "view/html.h"
#include "view/queries.h"
#include "view/run_export.h"

namespace assay::view {
namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kBinary = "application/octet-stream";
constexpr size_t kMostOrderRows = 40'000;
constexpr size_t kMostTableRows = 2'000;
constexpr size_t kMostPoints = 2'000;

Response refusal(int status, std::string text) {
  Response response;
  response.status = status;
  response.body = std::move(text) + "\n";
  return response;
}

Response made(Result<std::string> body, const char* type) {
  if (!body) return refusal(500, body.error().text());
  Response response;
  response.type = type;
  response.body = std::move(*body);
  return response;
}

// The range, threads and bins of a request, checked together.
struct Asked {
  Selection selection;
  CellShape shape;
};

// `thread` of the time order is a number, and no part of the selection.
Result<Asked> asked(const RunIndex& run, const std::string& what, Parameters parameters) {
  int64_t bins = what == "cells" ? 1 : 600;
  Asked result;
  if (what == "order") parameters.erase("thread");
  auto selection = select(run, parameters);
  if (!selection) return std::unexpected(selection.error());
  auto wanted = number(parameters, "bins", bins, 1, kMostBins);
  if (!wanted) return std::unexpected(wanted.error());
  auto by_thread = number(parameters, "by_thread", 0, 0, 1);
  if (!by_thread) return std::unexpected(by_thread.error());
  result.selection = std::move(*selection);
  result.shape = {static_cast<uint32_t>(*wanted), *by_thread == 1, SIZE_MAX};
  return result;
}

Response order(RunIndex& run, const Selection& selection, const Parameters& parameters) {
  auto threads = static_cast<int64_t>(run.contents().threads.size());
  auto thread = number(parameters, "thread", 0, 0, threads - 1);
  if (!thread) return refusal(400, thread.error().what);
  if (threads == 0) return refusal(404, "the run has no threads");
  return made(order_columns(run, selection, {static_cast<uint32_t>(*thread)}, kMostOrderRows),
              kBinary);
}

Response source(const RunIndex& run, const run::Reader& reader, const Parameters& parameters) {
  auto file = parameters.find("file");
  if (file == parameters.end()) return refusal(400, "parameter file is missing");
  auto from = number(parameters, "from", 1, 1, INT32_MAX);
  if (!from) return refusal(400, from.error().what);
  auto to = number(parameters, "to", *from + 200, *from, *from + 5'000);
  if (!to) return refusal(400, to.error().what);
  auto body = source_json(run, reader, file->second, static_cast<uint32_t>(*from),
                          static_cast<uint32_t>(*to));
  if (!body) return refusal(404, body.error().what);
  return made(std::move(body), kJson);
}

Response exported(const run::Reader& reader, const Parameters& parameters) {
  auto part = export_part(reader, parameters);
  if (!part) return refusal(400, part.error().text());
  Response response = made(std::move(part->bytes), kBinary);
  response.file_name = part->file_name;
  return response;
}

Response html(RunIndex& run, const run::Reader& reader) {
  auto report = run.report_json(reader);
  if (!report) return refusal(500, report.error().text());
  Response response = made(render_html(run, reader, *report), "text/html; charset=utf-8");
  response.file_name = "assay.html";
  return response;
}

}  // namespace

Response Api::runs_json(const Parameters& parameters) const {
  // Long enough that a page need not ask often, short enough that it can show progress.
  constexpr std::chrono::milliseconds kPatience{250};
  if (parameters.contains("wait")) {
    for (const auto& run : runs_) {
      if (!run->wait_for(kPatience)) break;
    }
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < runs_.size(); ++i) {
    const std::string& path = runs_[i]->path();
    bool ended = runs_[i]->wait_for(std::chrono::milliseconds(0));
    auto index = ended ? runs_[i]->index() : Result<RunIndex*>(nullptr);
    list.push_back({{"id", i},
                    {"name", path.substr(path.rfind('/') + 1)},
                    {"path", path},
                    {"ready", ended && index.has_value()},
                    {"progress", runs_[i]->progress()},
                    {"error", index ? "" : index.error().text()}});
  }
  return made(list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), kJson);
}

Response Api::handle(const Request& request) {
  if (request.method != "GET" && request.method != "POST") {
    return refusal(405, "only GET and POST are answered");
  }
  size_t mark = std::min(request.target.find('?'), request.target.size());
  std::string path = request.target.substr(0, mark);
  std::string query = mark < request.target.size() ? request.target.substr(mark + 1) : "";
  if (request.method == "POST") query += "&" + request.body;
  if (path == "/") return made(std::string(page_html()), "text/html; charset=utf-8");
  auto parameters = parse_query(query);
  if (!parameters) return refusal(400, parameters.error().what);
  if (path == "/api/runs") return runs_json(*parameters);
  if (path == "/api/formats") return made(formats_json(), kJson);
  constexpr std::string_view kPrefix = "/api/runs/";
  if (!path.starts_with(kPrefix)) return refusal(404, "nothing is served here");
  std::string_view rest = std::string_view(path).substr(kPrefix.size());
  size_t id = 0;
  auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), id);
  if (status != std::errc() || id >= runs_.size()) return refusal(404, "there is no such run");
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  if (!rest.starts_with('/')) return refusal(404, "nothing is served here");
  auto run = runs_[id]->index();
  if (!run) return refusal(500, run.error().text());
  return answer_kept(**run, std::string(rest.substr(1)), path + "?" + query, request, *parameters);
}

Response Api::answer_kept(RunIndex& run, const std::string& what, const std::string& question,
                          const Request& request, const Parameters& parameters) {
  // Laid out once and never changed.
  if (what == "meta") return made(meta_json(run), kJson);
  if (what == "tree") return made(tree_columns(run), kBinary);
  if (auto known = kept_.find(question)) return made(std::move(*known), kBinary);
  auto lease = run.borrow();
  if (request.gone && *request.gone) return refusal(503, "the request was cancelled");
  Response response = answer(run, what, parameters, lease.reader(), request.gone.get());
  bool is_columns = response.status == 200 && response.type == kBinary;
  if (is_columns && response.file_name.empty()) kept_.keep(question, response.body);
  return response;
}

Response Api::answer(RunIndex& run, const std::string& what, const Parameters& parameters,
                     const run::Reader& reader, const std::atomic<bool>* gone) {
  if (what == "report") return made(run.report_json(reader), kJson);
  if (what == "series") return made(series_columns(run, reader, kMostPoints), kBinary);
  if (what == "source") return source(run, reader, parameters);
  if (what == "html") return html(run, reader);
  if (what == "export") return exported(reader, parameters);
  auto ask = asked(run, what, parameters);
  if (!ask) return refusal(400, ask.error().what);
  ask->selection.reader = &reader;
  ask->selection.stop = gone;
  if (what == "cells") return made(cell_columns(run, ask->selection, ask->shape), kBinary);
  if (what == "heat" || what == "lanes") {
    ask->shape.by_thread = what == "lanes";
    return made(timeline_columns(run, ask->selection, ask->shape), kBinary);
  }
  if (what == "order") return order(run, ask->selection, parameters);
  if (what == "waits") return made(wait_columns(run, ask->selection, kMostTableRows), kBinary);
  if (what == "locks") return made(lock_columns(run, ask->selection, kMostTableRows), kBinary);
  if (what == "heap") return made(heap_columns(run, ask->selection), kBinary);
  if (what == "lines") return made(line_columns(run, ask->selection), kBinary);
  return refusal(404, "nothing is served here");
}

}  // namespace assay::view
