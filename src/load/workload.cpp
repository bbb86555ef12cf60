#include "load/workload.h"

#include <iterator>

namespace assay::load {

std::string grpc_frame(std::string_view message) {
  auto size = static_cast<uint32_t>(message.size());
  std::string frame;
  frame.reserve(message.size() + 5);
  frame += '\0';  // not compressed
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(size >> shift);
  frame += message;
  return frame;
}

RequestRenderer::RequestRenderer(const Workload& workload, uint64_t seed)
    : workload_(workload), random_(seed) {
  build_fixed();
}

void RequestRenderer::build_fixed() {
  if (workload_.protocol == Protocol::grpc) {
    if (!workload_.make_message && workload_.body.fixed())
      fixed_body_ = grpc_frame(workload_.body.fixed_text());
    return;
  }
  if (workload_.protocol != Protocol::http1) return;
  before_path_ = workload_.method + " ";
  after_path_ = head_after_path();
  if (workload_.path.fixed() && workload_.body.fixed()) fixed_ = http1(0);
}

std::string RequestRenderer::head_after_path() const {
  std::string text = " HTTP/1.1\r\n";
  for (const Header& header : workload_.headers) {
    fmt::format_to(std::back_inserter(text), "{}: {}\r\n", header.name, header.value);
  }
  return text;
}

std::string_view RequestRenderer::http1(uint64_t seq) {
  if (!fixed_.empty()) return fixed_;
  body_.clear();
  workload_.body.render(seq, random_, body_);
  text_ = before_path_;
  workload_.path.render(seq, random_, text_);
  text_ += after_path_;
  bool says_length = !body_.empty() || workload_.method == "POST" || workload_.method == "PUT" ||
                     workload_.method == "PATCH";
  if (says_length) {
    fmt::format_to(std::back_inserter(text_), "Content-Length: {}\r\n", body_.size());
  }
  text_ += "\r\n";
  text_ += body_;
  return text_;
}

std::string_view RequestRenderer::path(uint64_t seq, std::string& into) {
  if (workload_.path.fixed()) return workload_.path.fixed_text();
  into.clear();
  workload_.path.render(seq, random_, into);
  return into;
}

std::string_view RequestRenderer::body(uint64_t seq, std::string& into) {
  if (!fixed_body_.empty()) return fixed_body_;
  if (workload_.protocol != Protocol::grpc && workload_.body.fixed()) {
    return workload_.body.fixed_text();
  }
  body_.clear();
  workload_.body.render(seq, random_, body_);
  if (workload_.protocol != Protocol::grpc) {
    into = body_;
  } else {
    // The template was checked before the run began; a message that still cannot be encoded is sent
    // empty.
    auto message =
        workload_.make_message ? workload_.make_message(body_) : Result<std::string>(body_);
    into = grpc_frame(message ? *message : std::string());
  }
  return into;
}

}  // namespace assay::load
