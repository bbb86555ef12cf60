#include <atomic>
#include <fstream>
#include <iterator>

#include <fmt/core.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/stop_signals.h"
#include "cli/output/terminal.h"
#include "cli/flags/usage.h"
#include "load/generator.h"
#include "load/result/result_text.h"
#include "load/result/tick_line.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  assay load http://127.0.0.1:8000/ --connections 50 --for 10s\n"
    "  assay load http://127.0.0.1:8000/items/{{seq}} -X PUT -d '{\"id\": \"{{uuid}}\"}'\n"
    "  assay load https://127.0.0.1:8443/ --http2 --streams 10 --insecure\n"
    "  assay load http://127.0.0.1:8000/ --rate 2000     open loop: latency from the due time\n"
    "  assay load grpc://127.0.0.1:50051/helloworld.Greeter/SayHello -d '{\"name\": \"you\"}' \\\n"
    "             --connections 100 --requests 50        100 clients, 50 requests each\n"
    "\n"
    "Places in paths and in --data: {{seq}} {{random}} {{random:1-100}} {{uuid}} {{letters:8}} "
    "{{time}}.\n"
    "Exit status: 0 when at least one request succeeded, 1 when none did, 2 wrong usage.";

// A probe's exit codes: the server is there and fails; it says that such a request is none of its.
constexpr int kAnswersWithError = 3;
constexpr int kRefusesRequest = 4;

Result<std::string> read_whole_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.good() && !in.eof()) return fail("cannot read {}", path);
  return bytes;
}

Result<std::string> bytes_from_hex(const std::string& text) {
  std::string bytes;
  int high = -1;
  for (char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return fail("'{}' is no hex digit", c);
    int digit = std::isdigit(static_cast<unsigned char>(c)) != 0
                    ? c - '0'
                    : std::tolower(static_cast<unsigned char>(c)) - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      bytes += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  if (high >= 0) return fail("--data-hex has an odd number of digits");
  return bytes;
}

std::string progress_text(const load::Tick& tick, TimeNs begin) {
  double seconds = static_cast<double>(tick.end - tick.begin) / 1e9;
  return fmt::format("{} {}: {:.0f} requests/s, p50 {}, p99 {}, {} errors",
                     tick.warmup ? "warming up" : "load", format_duration(tick.end - begin),
                     seconds > 0 ? static_cast<double>(tick.tally.ok) / seconds : 0,
                     format_duration(tick.tally.latency.quantile_ns(0.5)),
                     format_duration(tick.tally.latency.quantile_ns(0.99)), tick.tally.failed);
}

class LoadCommand final : public Command {
 public:
  explicit LoadCommand(CLI::App* parser) : Command(parser) {
    parser->footer(kExamples);
    parser->add_option("url", options_.url, "http://, https://, grpc:// or grpcs:// address")
        ->required()
        ->type_name("URL");
    add_amount_options(*parser);
    add_request_options(*parser);
    parser->add_flag("-q,--quiet", quiet_, "No progress, no table of seconds");
    parser->add_flag("--json", json_, "Print the result as JSON");
    // Between the recorder and the load process that it starts; not for people.
    parser->add_option("--report-to", report_fd_)->group("");
    parser->add_flag("--probe", probe_)->group("");
  }

  int run(const Invocation& invocation) override {
    if (!invocation.launched_command.empty()) {
      return print_error({"assay load launches nothing: leave -- out", "", 0}), kWrongUsage;
    }
    if (auto ready = prepare(); !ready) {
      tell(load::format_line(load::ErrorLine{ready.error().what}));
      return print_error(ready.error()), kWrongUsage;
    }
    install_stop_signals();
    if (probe_) return probe();
    if (report_fd_ >= 0) return report_to_recorder();
    ProgressLine line(!quiet_ && !json_);
    TimeNs begin = monotonic_ns();
    auto result = load::generate(options_, stop_requested(), [&](const load::Tick& tick) {
      line.show(progress_text(tick, begin));
    });
    line.clear();
    if (!result) return print_error(result.error());
    if (quiet_) result->series.clear();
    say(stdout, "{}", json_ ? load::result_json(*result) + "\n" : load::result_text(*result));
    return result->total.ok > 0 ? kDone : kFailed;
  }

 private:
  // A line for the recorder; when it is gone, so is the reason to go on.
  void tell(const std::string& line) {
    if (report_fd_ < 0) return;
    std::string_view rest = line;
    while (!rest.empty()) {
      ssize_t count = ::write(report_fd_, rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        stop_requested() = true;
        return;
      }
      rest.remove_prefix(static_cast<size_t>(count));
    }
  }

  int report_to_recorder() {
    constexpr int64_t kTickNs = 100 * kNsPerMs;  // windows begin and end between ticks
    options_.tick_ns = kTickNs;
    tell(load::format_line(
        load::PlanLine{options_.rate > 0, options_.connections, options_.streams, options_.rate}));
    auto result = load::generate(options_, stop_requested(),
                                 [this](const load::Tick& tick) { tell(load::format_line(tick)); });
    if (!result) tell(load::format_line(load::ErrorLine{result.error().what}));
    if (result && result->total.ok == 0) tell(load::format_line(load::ErrorLine{worst(*result)}));
    return result && result->total.ok > 0 ? kDone : kFailed;
  }

  static std::string worst(const load::LoadResult& result) {
    std::string text = "no request succeeded";
    uint64_t most = 0;
    for (const auto& [outcome, count] : result.total.errors) {
      if (count <= most) continue;
      most = count;
      text = fmt::format("no request succeeded: {}", load::describe(outcome));
    }
    return text;
  }

  // One request: does the server answer?
  int probe() {
    constexpr int64_t kPatienceNs = 2 * kNsPerSecond;
    options_.connections = options_.streams = options_.threads = 1;
    options_.requests_per_client = 1;
    options_.rate = 0;
    options_.warmup_ns = 0;
    options_.duration_ns = options_.timeout_ns = kPatienceNs;
    auto result = load::generate(options_, stop_requested(), [](const load::Tick&) {});
    if (!result) {
      tell(load::format_line(load::ErrorLine{result.error().what}));
      return load::could_not_reach(result.error()) ? kFailed : kRefusesRequest;
    }
    if (result->total.ok > 0) return kDone;
    tell(load::format_line(load::ErrorLine{worst(*result)}));
    for (const auto& [outcome, count] : result->total.errors) {
      if (load::refuses_request(outcome)) return kRefusesRequest;
      if (load::is_an_answer(outcome)) return kAnswersWithError;
    }
    return kFailed;
  }

  void add_amount_options(CLI::App& parser) {
    parser.add_option("-c,--connections", options_.connections, "Connections (default 8)")
        ->type_name("N");
    parser
        .add_option("-m,--streams", options_.streams,
                    "Requests at a time on each connection (default 1; HTTP/2 and gRPC)")
        ->type_name("N");
    parser
        .add_option("-n,--requests", options_.requests_per_client,
                    "End after this many requests of each client (a connection, or a stream of it)")
        ->check(whole_number(1, uint64_t{1} << 40))
        ->type_name("N");
    parser.add_option("--for", duration_, "How long (default 10s; with --requests until done)")
        ->type_name("TIME");
    parser.add_option("--warmup", warmup_, "Load for this long first, uncounted")
        ->type_name("TIME");
    parser
        .add_option(
            "--rate", options_.rate,
            "Open loop: requests per second in all, each sent when due, however slow the answers")
        ->check(CLI::PositiveNumber)
        ->type_name("R");
    parser.add_option("--timeout", timeout_, "Longest wait for an answer (default 10s)")
        ->type_name("TIME");
    parser.add_option("--threads", options_.threads, "Threads that drive load (default 1)")
        ->type_name("N");
  }

  void add_request_options(CLI::App& parser) {
    parser.add_option("-X,--method", options_.method, "Method (default GET, with a body POST)")
        ->type_name("METHOD");
    parser
        .add_option("-H,--header", options_.headers, "Header, 'Name: value'; several may be given")
        ->allow_extra_args(false)
        ->type_name("HEADER");
    parser
        .add_option("-d,--data", data_,
                    "Body, with {{places}}; @FILE reads it from a file; of gRPC: the message as "
                    "JSON")
        ->type_name("TEXT");
    parser.add_option("--data-file", data_file_, "Body, or encoded gRPC message, byte for byte")
        ->type_name("FILE");
    parser.add_option("--data-hex", data_hex_, "Body in hex digits")->type_name("HEX");
    parser
        .add_option("--proto", options_.proto_files,
                    "File that describes the gRPC method (default: ask the server's reflection)")
        ->allow_extra_args(false)
        ->type_name("FILE");
    parser
        .add_option("--proto-path", options_.proto_paths, "Where the imports of a --proto file are")
        ->allow_extra_args(false)
        ->type_name("DIR");
    parser.add_flag("--http2", options_.http2, "HTTP/2: at once on http://, by ALPN on https://");
    parser.add_flag("--insecure", options_.tls.insecure, "Take any certificate");
    parser.add_option("--cacert", options_.tls.trust_file, "Certificates to trust (PEM)")
        ->type_name("FILE");
    parser.add_option("--seed", options_.seed, "Seed of the random places (default 1)")
        ->type_name("N");
  }

  Result<void> prepare() {
    if (duration_.empty() && options_.requests_per_client > 0) duration_ = "0";
    if (duration_.empty()) duration_ = "10s";
    for (auto [text, into] :
         {std::pair{&duration_, &options_.duration_ns}, std::pair{&warmup_, &options_.warmup_ns},
          std::pair{&timeout_, &options_.timeout_ns}}) {
      auto parsed = parse_duration_ns(*text);
      if (!parsed) return std::unexpected(parsed.error());
      *into = *parsed;
    }
    int bodies =
        (parser()->count("--data") > 0) + !data_file_.empty() + (parser()->count("--data-hex") > 0);
    if (bodies > 1) return fail("choose one of --data, --data-file and --data-hex");
    if (parser()->count("--data") > 0) {
      if (data_.starts_with('@')) {
        auto text = read_whole_file(data_.substr(1));
        if (!text) return std::unexpected(text.error());
        data_ = std::move(*text);
      }
      options_.data = data_;
    }
    if (!data_file_.empty() || parser()->count("--data-hex") > 0) {
      auto bytes = data_file_.empty() ? bytes_from_hex(data_hex_) : read_whole_file(data_file_);
      if (!bytes) return std::unexpected(bytes.error());
      options_.raw = std::move(*bytes);
    }
    // Wrong options are wrong usage; they are found before the first connection.
    return load::check_options(options_);
  }

  load::LoadOptions options_;
  std::string duration_;
  std::string warmup_ = "0";
  std::string timeout_ = "10s";
  std::string data_, data_file_, data_hex_;
  bool quiet_ = false;
  bool json_ = false;
  bool probe_ = false;
  int report_fd_ = -1;
};

}  // namespace

std::unique_ptr<Command> make_load_command(CLI::App& app) {
  return std::make_unique<LoadCommand>(
      app.add_subcommand("load", "Drive load at a server and measure its answers"));
}

}  // namespace assay::cli
