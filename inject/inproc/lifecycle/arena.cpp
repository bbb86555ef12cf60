#include "inject/inproc/lifecycle/arena.h"

#include <cstring>

#include <sys/mman.h>

namespace assay::inproc {
namespace {

constexpr size_t kChunkBytes = 256 << 10;
constexpr size_t kChunkHeadBytes = 16;

}  // namespace

void* map_pages(size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void unmap_pages(void* pages, size_t bytes) {
  if (pages != nullptr) munmap(pages, bytes);
}

Arena::~Arena() {
  for (Chunk* chunk = chunks_; chunk != nullptr;) {
    Chunk* next = chunk->next;
    unmap_pages(chunk, chunk->bytes);
    chunk = next;
  }
}

void* Arena::allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  if (bytes > left_) {
    size_t wanted = bytes + kChunkHeadBytes;
    if (wanted < kChunkBytes) wanted = kChunkBytes;
    auto* chunk = bytes > SIZE_MAX / 2 ? nullptr : static_cast<Chunk*>(map_pages(wanted));
    if (chunk == nullptr) {
      failed_ = true;
      return nullptr;
    }
    chunk->next = chunks_;
    chunk->bytes = wanted;
    chunks_ = chunk;
    free_ = reinterpret_cast<char*>(chunk) + kChunkHeadBytes;
    left_ = wanted - kChunkHeadBytes;
  }
  void* result = free_;
  free_ += bytes;
  left_ -= bytes;
  return result;
}

const char* Arena::copy(const char* text, size_t bytes) {
  auto* made = static_cast<char*>(allocate(bytes + 1));
  if (made != nullptr) std::memcpy(made, text, bytes);
  return made;
}

}  // namespace assay::inproc
