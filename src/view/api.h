// Api: requests of the page become answers. Knows paths and parameters, nothing of sockets.
//
// GET or POST (parameters in the body), under the server's token:
//   /                       the page
//   /api/runs               the runs and how far each is laid out, JSON; with wait=1 once one is
//                           ready, or after a moment
//   /api/runs/{id}/{what}   meta, report, tree, cells, heat, lanes, order, waits, locks, lines,
//                           heap, source, series, html, export (docs/view.md)
// Threads: handle() may be called from several at once. A question of a run that is not laid out
// yet waits for that; one whose asker has gone ends early. Failures: every one is a Response with a
// status and a sentence.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "view/answer_cache.h"
#include "view/opening_run.h"
#include "view/selection.h"

namespace assay::view {

struct Request {
  std::string method;  // "GET"
  std::string target;  // path and query, without the token
  std::string body;
  std::shared_ptr<const std::atomic<bool>> gone;  // true: the request was cancelled; may be null
};

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string file_name;  // not empty: to be saved under this name
};

class Api {
 public:
  explicit Api(std::vector<std::unique_ptr<OpeningRun>> runs) : runs_(std::move(runs)) {}
  Response handle(const Request& request);

 private:
  Response runs_json(const Parameters& parameters) const;
  Response answer_kept(RunIndex& run, const std::string& what, const std::string& question,
                       const Request& request, const Parameters& parameters);
  Response answer(RunIndex& run, const std::string& what, const Parameters& parameters,
                  const run::Reader& reader, const std::atomic<bool>* gone);
  std::vector<std::unique_ptr<OpeningRun>> runs_;
  AnswerCache kept_{64u << 20};
};

}  // namespace assay::view
