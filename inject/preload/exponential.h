// The arithmetic of Poisson sampling by bytes, without libm: intervals and weights.
//
// Pure, async-signal-safe; relative error below 1e-9, far below the error of sampling itself.
#pragma once

#include <cstdint>

namespace assay::inject {

// xorshift64*: small, fast, good enough for intervals. Never 0 in, never 0 out.
inline uint64_t next_random(uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1d;
}

// -ln(u) for u = (bits + 1) / 2^53, so u is in (0, 1].
double minus_log(uint64_t bits53);

// Whole bytes of an exponentially distributed interval of mean `rate_bytes`.
uint64_t draw_interval(uint64_t& random, uint64_t rate_bytes);

// 1 - e^(-x) for x >= 0.
double one_minus_exp(double x);

// How many allocations of `bytes` one sample at `rate_bytes` stands for.
inline double sample_weight(uint64_t bytes, uint64_t rate_bytes) {
  double share = one_minus_exp(static_cast<double>(bytes) / static_cast<double>(rate_bytes));
  return share > 0 ? 1 / share : 0;
}

}  // namespace assay::inject
