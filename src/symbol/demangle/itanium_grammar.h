// What the parts of ItaniumParser share: its limits on depth and steps, and the operators of C++.
#pragma once

#include <string_view>

#include "symbol/demangle/itanium_parser.h"

namespace assay::symbol {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

struct Operator {
  std::string_view code, sign;
  int operands;  // as an expression; 0: none of these
};

// Null when the code is of no operator.
const Operator* find_operator(std::string_view code);

// Held by every rule that may come to itself again: a name too deep or too long to read fails.
class ItaniumParser::Deeper {
 public:
  static constexpr int kMaxDepth = 192;
  static constexpr int kMaxSteps = 100000;
  explicit Deeper(ItaniumParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMaxDepth || ++parser_.steps_ > kMaxSteps) parser_.fail();
  }
  ~Deeper() { --parser_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  ItaniumParser& parser_;
};

}  // namespace assay::symbol
