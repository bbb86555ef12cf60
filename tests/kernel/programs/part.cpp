// A small library for odd_stacks: built twice, with different names and sizes of the same
// functions, so that reading the wrong one of two files at the same path gives wrong names.
#ifdef OTHER_PART
#define INNER part_inner_of_the_other
extern "C" [[gnu::noinline]] int part_filler(int x) {
  volatile int sum = 0;
  for (int i = 0; i < x; ++i) sum = sum + i * x;
  return sum;
}
#else
#define INNER part_inner_of_the_first
#endif

extern "C" [[gnu::noinline]] void INNER(void (*work)()) {
  work();
  asm volatile("" ::: "memory");
}

extern "C" void part_work(void (*work)()) {
#ifdef OTHER_PART
  part_filler(3);
#endif
  INNER(work);
  asm volatile("" ::: "memory");
}
