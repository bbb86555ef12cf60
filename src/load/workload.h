// Workload: the content of all requests of a run; RequestRenderer: the bytes of one request.
//
// A Workload is made before load starts and only read afterwards, by all workers. A renderer
// belongs to one worker: it has the random source of the templates. Parts that do not change from
// request to request are built once.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/text_template.h"
#include "load/url.h"

namespace assay::load {

enum class Protocol : uint8_t { http1, http2, grpc };

struct Header {
  std::string name;
  std::string value;
};

// JSON text to an encoded message; called by several threads at once.
using MessageMaker = std::function<Result<std::string>(const std::string&)>;

struct Workload {
  Url url;
  Protocol protocol = Protocol::http1;
  std::string method = "GET";
  std::vector<Header> headers;  // names as given; without Host, Content-Length and the like
  TextTemplate path;
  TextTemplate body;          // of gRPC: the message's bytes, or JSON when make_message is there
  MessageMaker make_message;  // gRPC, and the message differs from request to request
};

class RequestRenderer {
 public:
  RequestRenderer(const Workload& workload, uint64_t seed);

  // A whole HTTP/1.1 request; valid until the next call.
  std::string_view http1(uint64_t seq);
  // For HTTP/2. A path or body that differs is written to `into`; fixed parts are not copied.
  std::string_view path(uint64_t seq, std::string& into);
  // Of gRPC with its five-byte prefix. Empty when the request has none.
  std::string_view body(uint64_t seq, std::string& into);

 private:
  void build_fixed();
  std::string head_after_path() const;

  const Workload& workload_;
  std::mt19937_64 random_;
  std::string before_path_, after_path_;  // of an HTTP/1.1 head; Content-Length comes last
  std::string fixed_;                     // the whole HTTP/1.1 request when nothing differs
  std::string fixed_body_;                // of gRPC, with its prefix
  std::string text_, body_;
};

// Five bytes that say how long a gRPC message is, then the message.
std::string grpc_frame(std::string_view message);

}  // namespace assay::load
