#include "elf/decompress.h"

#include <algorithm>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

namespace assay::elf {
namespace {

constexpr uint64_t kMaxSectionBytes = uint64_t{1} << 30;
constexpr uint64_t kFreeSizeBytes = 16 << 20;  // below this any ratio is harmless
constexpr uint64_t kMaxRatio = 100;            // debug information shrinks 2 to 10 times
constexpr uint64_t kXzMemoryLimitBytes = 128 << 20;

bool plausible(uint64_t compressed, uint64_t size) {
  if (size > kMaxSectionBytes) return false;
  return size <= kFreeSizeBytes || size / kMaxRatio <= compressed;
}

}  // namespace

Result<std::string> inflate_zlib(std::string_view bytes, uint64_t size) {
  if (!plausible(bytes.size(), size)) return fail("a compressed section claims {} bytes", size);
  std::string out;
  uLongf got = size;
  int rc = Z_OK;
  // Megabytes that are about to be written need not be cleared first.
  out.resize_and_overwrite(size, [&](char* to, size_t) {
    rc = ::uncompress(reinterpret_cast<Bytef*>(to), &got,
                      reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    return rc == Z_OK ? got : 0;
  });
  if (rc != Z_OK || got != size) return fail("a zlib-compressed section is damaged");
  return out;
}

Result<std::string> inflate_zstd(std::string_view bytes, uint64_t size) {
  if (!plausible(bytes.size(), size)) return fail("a compressed section claims {} bytes", size);
  std::string out;
  size_t got = 0;
  out.resize_and_overwrite(size, [&](char* to, size_t) {
    got = ::ZSTD_decompress(to, size, bytes.data(), bytes.size());
    return ::ZSTD_isError(got) ? 0 : got;
  });
  if (::ZSTD_isError(got) || got != size) return fail("a zstd-compressed section is damaged");
  return out;
}

Result<std::string> inflate_xz(std::string_view bytes, uint64_t max_bytes) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (::lzma_stream_decoder(&stream, kXzMemoryLimitBytes, 0) != LZMA_OK) {
    return fail("the xz decoder does not start");
  }
  std::string out;
  stream.next_in = reinterpret_cast<const uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  lzma_ret rc = LZMA_OK;
  while (rc == LZMA_OK && out.size() < max_bytes) {
    size_t had = out.size();
    out.resize(std::min<uint64_t>(max_bytes, had + std::max<uint64_t>(had, 64 << 10)));
    stream.next_out = reinterpret_cast<uint8_t*>(out.data()) + had;
    stream.avail_out = out.size() - had;
    rc = ::lzma_code(&stream, LZMA_FINISH);
    out.resize(out.size() - stream.avail_out);
  }
  ::lzma_end(&stream);
  if (rc != LZMA_STREAM_END) return fail("xz-compressed symbols are damaged or too large");
  return out;
}

}  // namespace assay::elf
