// Api: requests of the page become answers. Knows paths and parameters, nothing of sockets.
//
// GET or POST (parameters in the body), under the server's token:
//   /                       the page
//   /api/runs               the runs, JSON
//   /api/runs/{id}/{what}   meta, report, tree, cells, heat, lanes, order, waits, locks, lines,
//                           source, series, html, export (docs/view.md)
// Threads: handle() may be called from several at once; each run answers one request at a time.
// Failures: every one is a Response with a status and a sentence.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "view/run_index.h"
#include "view/selection.h"

namespace assay::view {

struct Request {
  std::string method;  // "GET"
  std::string target;  // path and query, without the token
  std::string body;
};

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string file_name;  // not empty: to be saved under this name
};

class Api {
 public:
  explicit Api(std::vector<std::unique_ptr<RunIndex>> runs) : runs_(std::move(runs)) {}
  Response handle(const Request& request);

 private:
  Response runs_json() const;
  Response answer(RunIndex& run, const std::string& what, const Parameters& parameters);
  std::vector<std::unique_ptr<RunIndex>> runs_;
};

}  // namespace assay::view
