#include <algorithm>
#include <array>
#include <cmath>

#include "load/generator.h"
#include "load/grpc/message_schema.h"
#include "load/grpc/reflection.h"

namespace assay::load {
namespace {

constexpr uint32_t kMostConnections = 100'000;
constexpr uint32_t kMostStreams = 100'000;
constexpr uint32_t kMostThreads = 256;

bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kOthers.find(c) != kOthers.npos;
  });
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

Result<Header> parse_header(const std::string& text) {
  size_t colon = text.find(':');
  bool clean = text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos;
  if (colon == text.npos || !clean || !is_token(std::string_view(text).substr(0, colon))) {
    return fail_with_remedy(fmt::format("'{}' is not a header", text), "-H 'Name: value'");
  }
  size_t value = std::min(text.find_first_not_of(" \t", colon + 1), text.size());
  return Header{text.substr(0, colon), text.substr(value)};
}

Result<void> check(const LoadOptions& options, const Url& url) {
  if (options.connections == 0 || options.connections > kMostConnections) {
    return fail("--connections must be 1 to {}", kMostConnections);
  }
  if (options.streams == 0 || options.streams > kMostStreams) {
    return fail("--streams must be 1 to {}", kMostStreams);
  }
  if (options.streams > 1 && !url.grpc && !options.http2) {
    return fail_with_remedy("HTTP/1.1 carries one request at a time on a connection",
                            "--http2, or more --connections");
  }
  if (options.threads == 0 || options.threads > std::min(kMostThreads, options.connections)) {
    return fail("--threads must be 1 to the number of connections (at most {})", kMostThreads);
  }
  if (!std::isfinite(options.rate) || options.rate < 0) return fail("--rate must be above 0");
  if (options.timeout_ns <= 0) return fail("--timeout must be above 0");
  if (options.duration_ns == 0 && options.requests_per_client == 0) {
    return fail("--for 0 would send nothing");
  }
  if (options.data && options.raw) return fail("choose one of --data, --data-file and --data-hex");
  return {};
}

// Headers that the protocol layer writes itself, or that HTTP/2 does not have.
bool is_ours(const std::string& name) {
  constexpr std::array kOurs{"content-length", "transfer-encoding", "connection",      "te",
                             "keep-alive",     "upgrade",           "proxy-connection"};
  return std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end();
}

std::string_view content_type_of(const Workload& workload) {
  if (workload.protocol == Protocol::grpc) return "application/grpc";
  const std::string& body = workload.body.fixed_text();
  bool json = body.starts_with('{') || body.starts_with('[');
  return json ? "application/json" : "application/octet-stream";
}

Result<void> build_headers(const LoadOptions& options, bool has_body, Workload& workload) {
  bool http1 = workload.protocol == Protocol::http1;
  bool has_type = false, has_agent = false;
  std::vector<Header> given;
  for (const std::string& text : options.headers) {
    auto header = parse_header(text);
    if (!header) return std::unexpected(header.error());
    std::string name = lower(header->name);
    if (name == "host") {
      workload.url.authority = header->value;
      continue;
    }
    bool closes = http1 && name == "connection";
    if (is_ours(name) && !closes) {
      return fail("the header {} is written by Assay itself", header->name);
    }
    has_type |= name == "content-type";
    has_agent |= name == "user-agent";
    if (!http1) header->name = name;
    given.push_back(std::move(*header));
  }
  auto named = [http1](const char* name) { return http1 ? std::string(name) : lower(name); };
  if (http1) workload.headers.push_back({"Host", workload.url.authority});
  if (!has_agent) workload.headers.push_back({named("User-Agent"), "assay/" ASSAY_VERSION});
  if (has_body && !has_type) {
    workload.headers.push_back({named("Content-Type"), std::string(content_type_of(workload))});
  }
  if (workload.protocol == Protocol::grpc) workload.headers.push_back({"te", "trailers"});
  for (Header& header : given) workload.headers.push_back(std::move(header));
  return {};
}

// Everything that the options alone decide.
Result<Workload> describe_requests(const LoadOptions& options) {
  auto url = parse_url(options.url);
  if (!url) return std::unexpected(url.error());
  if (auto sane = check(options, *url); !sane) return std::unexpected(sane.error());
  Workload workload;
  workload.url = *url;
  workload.protocol = url->grpc       ? Protocol::grpc
                      : options.http2 ? Protocol::http2
                                      : Protocol::http1;
  auto path = TextTemplate::compile(url->path);
  if (!path) return std::unexpected(path.error());
  workload.path = std::move(*path);
  if (options.raw) workload.body = TextTemplate::literal(*options.raw);
  if (options.data) {
    auto body = TextTemplate::compile(*options.data);
    if (!body) return std::unexpected(body.error());
    workload.body = std::move(*body);
  }
  bool has_body = options.raw || options.data || url->grpc;
  workload.method = options.method;
  if (workload.method.empty()) workload.method = has_body ? "POST" : "GET";
  if (!is_token(workload.method)) return fail("'{}' is not an HTTP method", options.method);
  if (url->grpc && workload.method != "POST") return fail("gRPC is always POST: leave -X out");
  if (auto built = build_headers(options, has_body, workload); !built) {
    return std::unexpected(built.error());
  }
  return workload;
}

// From --proto files, or from the server itself.
Result<std::shared_ptr<MessageSchema>> find_schema(const LoadOptions& options,
                                                   const Workload& workload) {
  MethodName method = split_method(workload.url.path);
  if (!options.proto_files.empty()) {
    return MessageSchema::from_files(options.proto_files, options.proto_paths, method);
  }
  auto address = find_server(workload.url, options.timeout_ns);
  if (!address) return std::unexpected(address.error());
  std::unique_ptr<TlsContext> tls;
  if (workload.url.tls) {
    auto made = TlsContext::create(options.tls, workload.url.host, true);
    if (!made) return std::unexpected(made.error());
    tls = std::move(*made);
  }
  GrpcPeer peer{workload.url, *address, tls.get(), workload.headers, options.timeout_ns};
  auto descriptors = reflect(peer, method.service);
  if (!descriptors) return std::unexpected(descriptors.error());
  return MessageSchema::from_descriptors(*descriptors, method);
}

// The body of a gRPC workload becomes an encoded message, or a maker of them.
Result<void> encode_message(const LoadOptions& options, Workload& workload) {
  auto schema = find_schema(options, workload);
  if (!schema) return std::unexpected(schema.error());
  std::mt19937_64 random(options.seed);
  std::string json;
  workload.body.render(0, random, json);
  auto first = (*schema)->encode(json);
  if (!first) return std::unexpected(first.error());
  if (workload.body.fixed()) {
    workload.body = TextTemplate::literal(std::move(*first));
  } else {
    workload.make_message = [schema = *schema](const std::string& text) {
      return schema->encode(text);
    };
  }
  return {};
}

}  // namespace

Result<void> check_options(const LoadOptions& options) {
  auto workload = describe_requests(options);
  if (!workload) return std::unexpected(workload.error());
  return {};
}

Result<Workload> prepare_workload(const LoadOptions& options) {
  auto workload = describe_requests(options);
  if (!workload) return std::unexpected(workload.error());
  if (workload->protocol == Protocol::grpc && options.data) {
    if (auto encoded = encode_message(options, *workload); !encoded) {
      return std::unexpected(encoded.error());
    }
  }
  return workload;
}

}  // namespace assay::load
