#include <filesystem>

#include <fmt/core.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/flags/selection_flags.h"
#include "cli/flags/usage.h"
#include "cli/output/browser_page.h"
#include "cli/output/terminal.h"
#include "view/http_server.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay view run.assay                       look at a run in the browser\n"
    "  assay view before.assay after.assay        two runs, and what differs\n"
    "  assay view run.assay --no-browser --port 8080\n"
    "  assay report run.assay --format html -o run.html   the same page as one file";

class ViewCommand final : public Command {
 public:
  explicit ViewCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    parser->add_option("run", paths_, "Run files")->required()->type_name("RUN");
    parser->add_option("--port", port_, "Port to serve on (default: a free one)")
        ->check(whole_number(1, 65535))
        ->type_name("N");
    parser->add_option("--bind", address_, "Address to serve on (default 127.0.0.1)")
        ->type_name("ADDRESS");
    selection_.add_to(*parser);
    parser->add_flag("--source", local_source_,
                     "Also show source lines from files of this machine that the runs name");
    parser->add_flag("--no-browser", no_browser_, "Print the address and open nothing");
  }

  int run(const Invocation&) override {
    auto selection = selection_.selection();
    if (!selection) return print_error(selection.error()), kWrongUsage;
    view::ServerOptions options;
    options.address = address_;
    options.port = static_cast<uint16_t>(port_);
    auto token = view::new_token();
    if (!token) return print_error(token.error());
    options.token = *token;
    auto socket = view::listen_on(options.address, options.port);
    if (!socket) return print_error(socket.error());
    options.socket = socket->get();
    BrowserPage page;
    session::Confinement rights = reading(paths_);
    rights.files.sources = local_source_;
    rights.calls.serves = true;
    rights.keeps = {options.socket};
    // What serves may start no program: it tells us when the page can be opened.
    rights.told = [&](const std::string& url) {
      if (!no_browser_) open_browser(page, url);
      say(stderr, "Serving until Ctrl-C.\n");
    };
    return confined(rights, [&] { return serve(options, *selection); });
  }

 private:
  int serve(const view::ServerOptions& options, const run::Selection& selection) {
    std::vector<std::unique_ptr<view::OpeningRun>> runs;
    for (const std::string& path : paths_) {
      // The page selects in its first run.
      auto run = view::OpeningRun::start(path, runs.empty() ? selection : run::Selection(),
                                         local_source_);
      if (!run) return print_error(run.error());
      runs.push_back(std::move(*run));
    }
    std::string fragment = runs.front()->fragment();
    // What is wrong with most runs shows in this time; a large one is served while it is read.
    constexpr std::chrono::milliseconds kPatience{1'000};
    for (const auto& run : runs) {
      if (!run->wait_for(kPatience)) break;
      if (auto index = run->index(); !index) return print_error(index.error());
    }
    view::Api api(std::move(runs));
    auto server = view::HttpServer::start(
        options, [&](const view::Request& request) { return api.handle(request); });
    if (!server) return print_error(server.error());
    if (!view::is_loopback(address_)) {
      say(stderr,
          "assay: warning: {} can be reached from other machines; whoever has the address below "
          "sees the run, and it travels unencrypted\n",
          address_);
    }
    std::string url = (*server)->url() + fragment;
    say(stdout, "{}\n", url);
    fflush(stdout);
    if (auto told = session::tell_starter(url); !told) return print_error(told.error());
    (*server)->run();
    // Nothing is left to be written, and the report of a large run that is being worked out would
    // hold up the end for as long as it takes.
    fflush(nullptr);
    ::_exit(kDone);
  }

  static bool has_display() {
    return std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
  }

  // A browser that cannot be opened is no failure: the address stands above.
  static void open_browser(BrowserPage& page, const std::string& url) {
    const char* chosen = std::getenv("BROWSER");
    if (!chosen && !has_display()) {
      say(stderr, "No display here: open the address in a browser of your own.\n");
      return;
    }
    auto opened = page.open(chosen && *chosen ? chosen : "xdg-open", url);
    if (!opened) say(stderr, "{}: open the address yourself.\n", opened.error().what);
  }

  std::vector<std::string> paths_;
  SelectionFlags selection_;
  int port_ = 0;
  std::string address_ = "127.0.0.1";
  bool local_source_ = false;
  bool no_browser_ = false;
};

}  // namespace

std::unique_ptr<Command> make_view_command(CLI::App& app) {
  return std::make_unique<ViewCommand>(
      app.add_subcommand("view", "Look at runs in the browser, served to this machine only"));
}

}  // namespace assay::cli
