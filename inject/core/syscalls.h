// A system call without libc: no hook, no cancellation point, errno untouched. The result is
// negative errno on failure, as the kernel gives it.
#pragma once

namespace assay::inject {

#if defined(__x86_64__)
inline long raw_syscall(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long raw_syscall(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
}
#endif

inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0) {
  return raw_syscall(number, a, b, c, 0, 0, 0);
}

inline bool is_error(long result) {
  return result < 0 && result >= -4095;
}

}  // namespace assay::inject
