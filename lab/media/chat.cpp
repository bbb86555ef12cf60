#include "lab/media/chat.h"

#include <nlohmann/json.hpp>

namespace lab::media {

using nlohmann::json;

namespace {
constexpr uint32_t kMostTokens = 4096;
constexpr auto kReplace = json::error_handler_t::replace;
}  // namespace

ChatRequest parse_chat(const std::string& body) {
  ChatRequest chat;
  json parsed = json::parse(body, nullptr, false);
  if (!parsed.is_object()) return {{}, 0, false, "the body is not a JSON object"};
  auto messages = parsed.find("messages");
  if (messages == parsed.end() || !messages->is_array() || messages->empty()) {
    return {{}, 0, false, "messages must be a list that is not empty"};
  }
  for (const json& message : *messages) {
    if (!message.is_object() || !message.contains("content") || !message["content"].is_string()) {
      return {{}, 0, false, "a message must have content that is a string"};
    }
    chat.prompt += message["content"].get_ref<const std::string&>();
  }
  if (auto limit = parsed.find("max_tokens"); limit != parsed.end()) {
    if (!limit->is_number_unsigned() || limit->get<uint64_t>() < 1 ||
        limit->get<uint64_t>() > kMostTokens) {
      return {{}, 0, false, "max_tokens must be 1 to 4096"};
    }
    chat.max_tokens = limit->get<uint32_t>();
  }
  if (auto stream = parsed.find("stream"); stream != parsed.end()) {
    chat.streamed = stream->is_boolean() && stream->get<bool>();
  }
  return chat;
}

std::string completion_json(std::string_view text, uint32_t tokens) {
  json choice{{"index", 0},
              {"message", {{"role", "assistant"}, {"content", text}}},
              {"finish_reason", "length"}};
  json answer{{"object", "chat.completion"}, {"model", "llm"}, {"choices", json::array({choice})}};
  answer["usage"]["completion_tokens"] = tokens;
  return answer.dump(-1, ' ', false, kReplace);
}

std::string chunk_event(std::string_view text, bool last) {
  json choice{{"index", 0}, {"delta", {{"content", text}}}};
  choice["finish_reason"] = last ? json("length") : json(nullptr);
  json chunk{{"object", "chat.completion.chunk"}, {"choices", json::array({choice})}};
  return "data: " + chunk.dump(-1, ' ', false, kReplace) + "\n\n" +
         (last ? "data: [DONE]\n\n" : "");
}

std::string error_json(std::string_view message) {
  return json{{"error", {{"message", message}}}}.dump(-1, ' ', false, kReplace);
}

}  // namespace lab::media
