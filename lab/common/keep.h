// keep(value): the compiler must compute the value, though nobody reads it.
#pragma once

namespace lab {

template <typename T>
[[gnu::always_inline]] inline void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace lab
