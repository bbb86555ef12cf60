#include "inject/inproc/http/index_page.h"

#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "inject/inproc/http/access.h"
#include "inject/inproc/cpu/collect.h"
#include "inject/inproc/cpu/cpu_profiler.h"
#include "inject/inproc/lifecycle/label_table.h"
#include "inject/inproc/locks/lock_waits.h"
#include "inject/inproc/cpu/own_threads.h"
#include "inject/inproc/lifecycle/real_functions.h"

namespace assay::inproc {
namespace {

constexpr std::string_view kStyle = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>/debug/pprof/</title><style>
:root { color-scheme: light dark; --line: light-dark(#d8dade, #3a3d44); --dim: light-dark(#5b616b, #a0a6b0);
  --link: light-dark(#0b57d0, #8ab4f8); --code: light-dark(#f3f4f6, #24262b); }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1.25rem; }
h1 { font-size: 1.35rem; margin: 0 } h2 { font-size: 1rem; margin: 2rem 0 .5rem }
p { margin: .35rem 0; color: var(--dim) } a { color: var(--link) }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .4rem .75rem .4rem 0; border-top: 1px solid var(--line); vertical-align: top }
th { font-weight: 600; border-top: 0 } td.now { white-space: nowrap; font-variant-numeric: tabular-nums }
code, pre { font: 13px/1.5 ui-monospace, monospace } pre { background: var(--code); padding: .75rem 1rem;
  border-radius: 6px; overflow-x: auto; margin: .5rem 0 } .dim { color: var(--dim) }
</style></head><body>
)";

void escaped(std::string_view text, ByteBuffer& out) {
  for (char c : text) {
    switch (c) {
      case '&':
        out.append("&amp;");
        break;
      case '<':
        out.append("&lt;");
        break;
      case '>':
        out.append("&gt;");
        break;
      case '"':
        out.append("&quot;");
        break;
      default:
        out.append(&c, 1);
    }
  }
}

// The token of the request for this page, for its links; empty: there was none.
struct TokenQuery {
  char text[3 * kMaxTokenBytes + 8] =
      "";  // "token=…", without characters that are special in HTML or a shell
};

void token_of(const HttpRequest& request, TokenQuery& out) {
  char token[kMaxTokenBytes];
  if (!query_value(request.query, "token", token, sizeof token)) return;
  char* to = out.text + snprintf(out.text, sizeof out.text, "token=");
  for (const char* c = token; *c != 0; ++c) {
    bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
    to += snprintf(to, 4, plain ? "%c" : "%%%02X", static_cast<unsigned char>(*c));
  }
}

struct Link {
  const char *page, *query, *text;
};

void write_link(const Link& link, const TokenQuery& token, ByteBuffer& out) {
  bool both = link.query[0] != 0 && token.text[0] != 0;
  bool any = link.query[0] != 0 || token.text[0] != 0;
  out.print("<a href=\"%s%s%s%s%s\">%s</a>", link.page, any ? "?" : "", link.query,
            both ? "&amp;" : "", token.text, link.text);
}

struct Row {
  const char* name;
  const char* query;
  const char* says;
  bool text;  // has a debug=1 view
};
constexpr Row kRows[] = {
    {"allocs", "", "All allocations since sampling began, by call site.", true},
    {"block", "", "Waits for locks, conditions and semaphores, by who waited.", true},
    {"cmdline", "", "The command line.", false},
    {"goroutine", "", "The stacks of all threads now.", true},
    {"heap", "", "What lives on the heap now, by who allocated it.", true},
    {"mutex", "", "Waits for mutexes and reader-writer locks, by who waited.", true},
    {"profile", "seconds=5",
     "CPU time by stack. Runs for <code>seconds</code> (30), at <code>hz</code> (100).", false},
    {"symbol", "", "Names of addresses, for tools.", false},
    {"threadcreate", "", "Where threads were created.", true},
    {"trace", "seconds=1",
     "A timeline of what threads did, for ui.perfetto.dev. Runs for <code>seconds</code> (1).",
     false},
};

void bytes_text(double bytes, char (&text)[48]) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  snprintf(text, sizeof text, "%.*f %s", unit == 0 ? 0 : 1, bytes, units[unit]);
}

void waits_text(bool (*collect)(Arena&, Profile&), char (&text)[48]) {
  Arena arena;
  Profile profile;
  if (!waits_are_sampled() || !hooks_are_here()) {
    snprintf(text, sizeof text, "off");
    return;
  }
  int64_t waits = 0, ns = 0;
  if (collect(arena, profile)) {
    for (size_t i = 0; i < profile.count; ++i) {
      waits += profile.samples[i].values[0];
      ns += profile.samples[i].values[1];
    }
  }
  snprintf(text, sizeof text, "%ld waits, %.2f s", waits, static_cast<double>(ns) / 1e9);
}

void now_text(std::string_view name, char (&text)[48]) {
  text[0] = 0;
  if (name == "heap" || name == "allocs") {
    HeapTotals totals = heap_totals_now();
    if (!heap_is_sampled())
      snprintf(text, sizeof text, "off");
    else
      bytes_text(name == "heap" ? totals.live_bytes : totals.allocated_bytes, text);
  } else if (name == "mutex") {
    waits_text(collect_mutex, text);
  } else if (name == "block") {
    waits_text(collect_block, text);
  } else if (name == "goroutine") {
    int threads = 0;
    for_each_thread([](int tid, void* sum) { *static_cast<int*>(sum) += !is_own_thread(tid); },
                    &threads);
    snprintf(text, sizeof text, "%d threads", threads);
  } else if (name == "profile" && cpu_profile_runs()) {
    snprintf(text, sizeof text, "one is running");
  } else if (name == "threadcreate") {
    Arena arena;
    Profile profile;
    int64_t count = 0;
    if (collect_thread_creations(arena, profile))
      for (size_t i = 0; i < profile.count; ++i) count += profile.samples[i].values[0];
    if (hooks_are_here())
      snprintf(text, sizeof text, "%ld created", count);
    else
      snprintf(text, sizeof text, "off");
  }
}

void write_head(ByteBuffer& out) {
  ByteBuffer command;
  read_whole_file("/proc/self/cmdline", command);
  for (size_t i = 0; i < command.size(); ++i)
    if (command.data()[i] == 0) command.data()[i] = ' ';
  out.append("<h1>/debug/pprof/</h1>\n<p><code>");
  escaped({command.data(), command.size() < 400 ? command.size() : 400}, out);
  out.print("</code><br>pid %d, libassay %s", getpid(), ASSAY_VERSION);
  if (dropped_labels() > 0)
    out.print(", %lu labels beyond what is kept", static_cast<unsigned long>(dropped_labels()));
  out.append("</p>\n");
}

void write_commands(std::string_view host, const TokenQuery& token, ByteBuffer& out) {
  struct Command {
    const char *begin, *page;
  };
  constexpr Command kCommands[] = {{"go tool pprof -http=:", "profile?seconds=5"},
                                   {"go tool pprof", "heap"},
                                   {"curl -s", "goroutine?debug=2"},
                                   {"curl -so trace.json", "trace?seconds=2"}};
  out.append("<h2>From a shell</h2>\n<pre>");
  for (const Command& command : kCommands) {
    out.print("%s 'http://", command.begin);
    escaped(host, out);
    const char* join = std::strchr(command.page, '?') != nullptr ? "&amp;" : "?";
    out.print("/debug/pprof/%s%s%s'\n", command.page, token.text[0] == 0 ? "" : join, token.text);
  }
  // This tool requests pages by their names only, so it does not work with a token.
  if (token.text[0] == 0) {
    out.append("google-pprof --text --seconds=5 http://");
    escaped(host, out);
    out.append("/pprof/profile\n");
  }
  out.append(
      "</pre>\n<p>Kept profiles take <code>?seconds=N</code> too: what changed in those "
      "seconds.</p>\n");
}

}  // namespace

void write_index_page(const HttpRequest& request, ByteBuffer& out) {
  TokenQuery token;
  token_of(request, token);
  out.append(kStyle);
  write_head(out);
  out.append("<h2>Profiles</h2>\n<table><tr><th>profile</th><th>now</th><th></th><th></th></tr>\n");
  for (const Row& row : kRows) {
    char now[48];
    now_text(row.name, now);
    out.append("<tr><td>");
    write_link({row.name, row.query, row.name}, token, out);
    out.append("</td><td class=\"now\">");
    escaped(now, out);
    out.append("</td><td>");
    if (row.text) write_link({row.name, "debug=1", "text"}, token, out);
    out.print("</td><td>%s", row.says);
    if (std::strcmp(row.name, "goroutine") == 0) {
      out.append(" (");
      write_link({row.name, "debug=2", "every thread with its name"}, token, out);
      out.append(")");
    }
    out.append("</td></tr>\n");
  }
  out.append("</table>\n");
  std::string_view host = request.host.empty() ? std::string_view("127.0.0.1:8070") : request.host;
  write_commands(host, token, out);
  out.append("</body></html>\n");
}

}  // namespace assay::inproc
