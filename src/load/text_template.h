// TextTemplate: a body or a path with placeholders that differ from request to request.
//
//   {{seq}}              0, 1, 2, …: the request's number, unique in a run
//   {{random}}           0 … 4294967295      {{random:1-100}}   1 … 100
//   {{uuid}}             a random version-4 UUID
//   {{letters:8}}        eight random small letters (at most 1,000,000)
//   {{time}}             Unix time in milliseconds
//
// Compiled once, rendered per request. An unknown placeholder is an Error. Threads: rendering is
// const; the random source is the caller's.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::load {

class TextTemplate {
 public:
  TextTemplate() = default;
  static Result<TextTemplate> compile(std::string_view text);
  // No placeholders: the bytes unchanged.
  static TextTemplate literal(std::string bytes);

  bool fixed() const { return pieces_.empty(); }
  const std::string& fixed_text() const { return first_; }
  bool empty() const { return fixed() && first_.empty(); }
  // Appends to `out`.
  void render(uint64_t seq, std::mt19937_64& random, std::string& out) const;

 private:
  enum class Place : uint8_t { seq, random, uuid, letters, time };
  struct Piece {
    Place place = Place::seq;
    uint64_t low = 0, high = 0;  // of random; of letters: how many
    std::string after;           // literal text behind it
  };
  static Result<Piece> parse_place(std::string_view inside);

  std::string first_;
  std::vector<Piece> pieces_;
};

}  // namespace assay::load
