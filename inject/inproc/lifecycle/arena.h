// Arena: memory of one request, taken from the kernel and freed as a whole.
//
// libassay never calls malloc for its own work: its allocations would show up in the host's heap
// profile, and the host's allocator may be what is being profiled. One thread at a time. Failures:
// no memory gives nullptr and sets failed(); callers abandon the request.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::inproc {

// Zeroed pages; nullptr when there are none.
void* map_pages(size_t bytes);
void unmap_pages(void* pages, size_t bytes);

class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(size_t bytes);  // zeroed, aligned to 16
  template <typename T>
  T* array(size_t count) {
    if (count > SIZE_MAX / 2 / sizeof(T)) return nullptr;
    return static_cast<T*>(allocate(count * sizeof(T)));
  }
  const char* copy(const char* text, size_t bytes);  // with a NUL behind it
  bool failed() const { return failed_; }

 private:
  struct Chunk {
    Chunk* next;
    size_t bytes;
  };
  Chunk* chunks_ = nullptr;
  char* free_ = nullptr;
  size_t left_ = 0;
  bool failed_ = false;
};

}  // namespace assay::inproc
