// Selection: which part of a run is asked for. Every command and every question of the page says it
// with this type.
//
// Everything empty: the whole run. A thread is selected when it matches every list that is not
// empty; of the values in one list any will do. It has one text form, the query of an address:
//   pid=10,11&pool=worker-*&from=2000000000&focus=parse
// selection_text() and parse_selection() are each other's inverse. In texts by comma a backslash
// stands before a comma or backslash that belongs to the text. Plain value. Failures: text that is
// no selection.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/query_text.h"
#include "base/result.h"
#include "model/ids.h"

namespace assay::run {

struct Selection {
  // Threads.
  std::vector<pid_t> pids;                    // pid=
  std::vector<pid_t> tids;                    // tid=
  std::vector<std::string> pools;             // pool=; of a thread without one its name
  std::vector<std::string> processes;         // process=; a role, a name, a pid, or a label
  std::vector<model::ProcessId> process_ids;  // processes=; besides these, by number in the run
  std::string thread;                         // thread=; expression over names, or a tid
  std::optional<std::vector<model::ThreadId>> threads;  // threads=; by number in the run
  // Time, since the beginning of the window.
  std::optional<int64_t> from_ns;  // from=
  std::optional<int64_t> to_ns;    // to=
  // Stacks.
  std::string focus;                               // focus=; expression: with such a function
  std::string ignore;                              // ignore=; expression: without one
  std::optional<std::vector<uint32_t>> functions;  // functions=; by number in the call tree
  // States.
  bool without_idle = false;  // idle=0; no waiting for work; a wait for a CPU after it stays

  bool operator==(const Selection&) const = default;

  bool names_threads() const {
    return !pids.empty() || !tids.empty() || !pools.empty() || !processes.empty() ||
           !thread.empty();
  }
  bool narrows_threads() const { return names_threads() || !process_ids.empty() || threads; }
  bool narrows_time() const { return from_ns || to_ns; }
  bool narrows_stacks() const { return !focus.empty() || !ignore.empty() || functions; }
  bool is_whole() const { return *this == Selection(); }
};

std::string selection_text(const Selection& selection);
// Strict: a name that is no part of a selection is an Error.
Result<Selection> parse_selection(std::string_view text);
// The selection among the parameters of a request; other names are left alone.
Result<Selection> selection_among(const Parameters& parameters);

// For people: "pid 10, 11; pool worker-*"; empty for the whole run.
std::string describe(const Selection& selection);

// "2s..5s", "2s..", "..500ms" → from_ns and to_ns of the selection.
Result<void> parse_time_range(std::string_view text, Selection& selection);

}  // namespace assay::run
