#include "load/text_template.h"

#include <charconv>
#include <iterator>

#include "base/clock.h"

namespace assay::load {
namespace {

constexpr uint64_t kMostLetters = 1'000'000;

bool parse_number(std::string_view text, uint64_t& value) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() && !text.empty();
}

void append_uuid(std::mt19937_64& random, std::string& out) {
  uint64_t high = (random() & ~uint64_t{0xf000}) | 0x4000;                 // version 4
  uint64_t low = (random() & ~(uint64_t{3} << 62)) | (uint64_t{2} << 62);  // variant 1
  fmt::format_to(std::back_inserter(out), "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32,
                 (high >> 16) & 0xffff, high & 0xffff, low >> 48, low & 0xffffffffffff);
}

}  // namespace

Result<TextTemplate::Piece> TextTemplate::parse_place(std::string_view inside) {
  std::string_view name = inside.substr(0, inside.find(':'));
  std::string_view argument =
      name.size() < inside.size() ? inside.substr(name.size() + 1) : std::string_view();
  Piece piece;
  if (argument.empty() && name.size() == inside.size()) {
    if (name == "seq") return piece;
    if (name == "uuid") return piece.place = Place::uuid, piece;
    if (name == "time") return piece.place = Place::time, piece;
    if (name == "random") return piece.place = Place::random, piece.high = UINT32_MAX, piece;
  }
  if (name == "random") {
    size_t dash = argument.find('-');
    piece.place = Place::random;
    if (dash != argument.npos && parse_number(argument.substr(0, dash), piece.low) &&
        parse_number(argument.substr(dash + 1), piece.high) && piece.low <= piece.high) {
      return piece;
    }
  }
  if (name == "letters") {
    piece.place = Place::letters;
    if (parse_number(argument, piece.high) && piece.high <= kMostLetters) return piece;
  }
  return fail_with_remedy(
      fmt::format("'{{{{{}}}}}' is not a template place that Assay knows", inside),
      "{{seq}}, {{random}}, {{random:1-100}}, {{uuid}}, {{letters:8}}, {{time}}; or --data-file to "
      "send bytes as they are");
}

Result<TextTemplate> TextTemplate::compile(std::string_view text) {
  TextTemplate result;
  std::string* literal = &result.first_;
  while (true) {
    size_t open = text.find("{{");
    size_t close = open == text.npos ? text.npos : text.find("}}", open);
    if (close == text.npos) {
      *literal += text;
      return result;
    }
    *literal += text.substr(0, open);
    auto piece = parse_place(text.substr(open + 2, close - open - 2));
    if (!piece) return std::unexpected(piece.error());
    literal = &result.pieces_.emplace_back(std::move(*piece)).after;
    text.remove_prefix(close + 2);
  }
}

TextTemplate TextTemplate::literal(std::string bytes) {
  TextTemplate result;
  result.first_ = std::move(bytes);
  return result;
}

void TextTemplate::render(uint64_t seq, std::mt19937_64& random, std::string& out) const {
  out += first_;
  for (const Piece& piece : pieces_) {
    switch (piece.place) {
      case Place::seq:
        fmt::format_to(std::back_inserter(out), "{}", seq);
        break;
      case Place::uuid:
        append_uuid(random, out);
        break;
      case Place::time:
        fmt::format_to(std::back_inserter(out), "{}", utc_ns() / kNsPerMs);
        break;
      case Place::random: {
        std::uniform_int_distribution<uint64_t> between(piece.low, piece.high);
        fmt::format_to(std::back_inserter(out), "{}", between(random));
        break;
      }
      case Place::letters:
        for (uint64_t i = 0; i < piece.high; ++i) out += static_cast<char>('a' + random() % 26);
        break;
    }
    out += piece.after;
  }
}

}  // namespace assay::load
