#include "inject/preload/exponential.h"

#include <cstring>

namespace assay::inject {

namespace {

constexpr double kLn2 = 0.693147180559945309417;

double from_bits(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

double minus_log(uint64_t bits53) {
  double whole = static_cast<double>((bits53 & ((uint64_t{1} << 53) - 1)) + 1);  // exact
  uint64_t bits;
  std::memcpy(&bits, &whole, sizeof bits);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = from_bits((bits & 0x000fffffffffffff) | 0x3ff0000000000000);  // [1, 2)
  if (mantissa > 1.41421356237309505) mantissa /= 2, ++exponent;
  // ln(m) = 2 artanh((m - 1) / (m + 1)); |s| < 0.172, so the 15th power ends it below 1e-12.
  double s = (mantissa - 1) / (mantissa + 1), s2 = s * s;
  double series =
      1 +
      s2 * (1 / 3.0 +
            s2 * (1 / 5.0 + s2 * (1 / 7.0 + s2 * (1 / 9.0 + s2 * (1 / 11.0 + s2 * (1 / 13.0))))));
  return (53 - exponent) * kLn2 - 2 * s * series;
}

uint64_t draw_interval(uint64_t& random, uint64_t rate_bytes) {
  if (rate_bytes <= 1) return 0;  // every allocation
  return static_cast<uint64_t>(minus_log(next_random(random) >> 11) *
                               static_cast<double>(rate_bytes));
}

double one_minus_exp(double x) {
  if (!(x > 0)) return 0;
  if (x > 40) return 1;
  // e^-x = 2^-k e^-r with r in [0, ln 2); where k is 0 the series gives 1 - e^-r itself, so that a
  // small x loses nothing.
  int k = static_cast<int>(x / kLn2);
  double r = x - k * kLn2, term = r, sum = 0;
  for (int i = 2; i < 22; ++i) {
    sum += term;
    term *= -r / i;
  }
  double scale = from_bits(static_cast<uint64_t>(1023 - k) << 52);
  return 1 - scale + scale * sum;
}

}  // namespace assay::inject
