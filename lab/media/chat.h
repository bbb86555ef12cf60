// The OpenAI-like JSON of /v1/chat/completions.
//
// In: a request's body, not trusted. Out: the fields that the server needs, or why it is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lab::media {

struct ChatRequest {
  std::string prompt;  // the messages' contents, joined
  uint32_t max_tokens = 16;
  bool streamed = false;
  std::string error;  // not empty: refused
};

ChatRequest parse_chat(const std::string& body);
std::string completion_json(std::string_view text, uint32_t tokens);
std::string chunk_event(std::string_view text, bool last);  // one server-sent event
std::string error_json(std::string_view message);

}  // namespace lab::media
