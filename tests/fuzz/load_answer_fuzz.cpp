// Fuzz entry of what the load generator reads from servers: HTTP/1 answers, gRPC messages, the
// answers of a reflection service, and the lines of its own reports. Any bytes, whole and in
// pieces.
//
// With clang: -fsanitize=fuzzer,address over this file and assay_load. Without: replay_driver.cpp
// runs it on a corpus and on seeded mutations of it, as a normal test.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "load/grpc/grpc_answer.h"
#include "load/http1/http1_response.h"
#include "load/grpc/reflection.h"
#include "load/result/tick_line.h"
#include "load/grpc/wire_reader.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace assay::load;

struct Read {
  Http1Response::Step step = Http1Response::Step::more;
  size_t taken = 0;
  int status = 0;
};

Read read_answer(std::string_view bytes, size_t piece) {
  Http1Response response;
  response.begin(false);
  Read read;
  while (read.taken < bytes.size() && read.step == Http1Response::Step::more) {
    std::string_view part = bytes.substr(read.taken, piece);
    size_t given = part.size();
    read.step = response.feed(part);
    if (part.size() > given) std::abort();
    if (read.step == Http1Response::Step::more && !part.empty()) std::abort();
    read.taken += given - part.size();
  }
  read.status = response.status();
  if (read.step == Http1Response::Step::more) response.end_of_stream();
  return read;
}

void check_http1(std::string_view bytes) {
  Read whole = read_answer(bytes, std::max<size_t>(1, bytes.size()));
  for (size_t piece : {size_t{1}, size_t{7}}) {
    Read pieces = read_answer(bytes, piece);
    if (pieces.step != whole.step) std::abort();
    bool done = whole.step == Http1Response::Step::done;
    if (done && (pieces.taken != whole.taken || pieces.status != whole.status)) std::abort();
  }
}

void check_grpc(std::string_view bytes) {
  GrpcAnswer whole, pieces;
  uint32_t messages = whole.feed(bytes);
  for (char byte : bytes) pieces.feed({&byte, 1});
  if (messages != pieces.messages() || whole.bad() != pieces.bad()) std::abort();
  whole.set_status(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string copy(reinterpret_cast<const char*>(data), size);
  std::string_view bytes = copy;
  check_http1(bytes);
  check_grpc(bytes);
  (void)descriptors_in(bytes);
  (void)parse_line(bytes);
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::string file, response;
  append_bytes_field(1, "a file", file);
  append_bytes_field(4, file, response);
  std::vector<std::vector<uint8_t>> corpus;
  for (const std::string& text :
       {std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
        std::string("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
                    "5;x=y\r\nhello\r\n0\r\nTrailer: z\r\n\r\nmore"),
        std::string("HTTP/1.0 404 Not Found\nConnection: keep-alive\n\nuntil the end"),
        std::string("\0\0\0\0\3abc\0\0\0\0\0", 13), response,
        std::string("tick 123 4 5 6 7 8 90:1 91:2 L3:4"), std::string("plan open 8 1 2.5")}) {
    corpus.emplace_back(text.begin(), text.end());
  }
  return corpus;
}
