// keep(value): makes the compiler compute the value although it is not used.
#pragma once

namespace lab {

template <typename T>
[[gnu::always_inline]] inline void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace lab
