#include "formats/gzip.h"

#include <algorithm>

#include <zlib.h>

namespace assay::formats {
namespace {

constexpr int kGzipWindow = 15 + 16;
constexpr size_t kStep = 1 << 20;

Bytef* raw(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

}  // namespace

Result<std::string> gzip(std::string_view bytes) {
  z_stream stream{};
  // Level 4: within a few percent of the default's size at half its time.
  if (deflateInit2(&stream, 4, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail("zlib cannot start");
  }
  std::string packed;
  std::string buffer(kStep, '\0');
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      size_t size = std::min<size_t>(bytes.size(), 1 << 30);
      stream.next_in = raw(bytes);
      stream.avail_in = static_cast<uInt>(size);
      bytes.remove_prefix(size);
    }
    stream.next_out = raw(buffer);
    stream.avail_out = kStep;
    status = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    packed.append(buffer, 0, kStep - stream.avail_out);
  }
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail("zlib cannot compress");
  return packed;
}

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

namespace {

// Appends what is in `bytes` to `plain`, until that has more than `most_bytes`: then false.
Result<bool> inflate_all(std::string_view bytes, size_t most_bytes, std::string& plain) {
  std::string buffer(std::min(kStep, most_bytes + 1), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    z_stream stream{};
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) return fail("zlib cannot start");
    size_t begin = at;
    int status = Z_OK;
    while (status == Z_OK) {
      size_t done = begin + stream.total_in;
      stream.next_in = raw(bytes.substr(done));
      stream.avail_in = static_cast<uInt>(std::min<size_t>(bytes.size() - done, 1 << 30));
      stream.next_out = raw(buffer);
      stream.avail_out = static_cast<uInt>(buffer.size());
      status = inflate(&stream, Z_NO_FLUSH);
      plain.append(buffer, 0, buffer.size() - stream.avail_out);
      if (plain.size() > most_bytes) {
        inflateEnd(&stream);
        return false;
      }
    }
    at = begin + stream.total_in;
    inflateEnd(&stream);
    if (status == Z_BUF_ERROR) return fail("gzip data ends early at offset {}", at);
    if (status != Z_STREAM_END) return fail("damaged gzip data at offset {}", at);
  }
  return true;
}

}  // namespace

Result<std::string> gunzip(std::string_view bytes, size_t most_bytes) {
  std::string plain;
  auto whole = inflate_all(bytes, most_bytes, plain);
  if (!whole) return std::unexpected(whole.error());
  if (!*whole) return fail("unpacks to more than {} bytes", most_bytes);
  return plain;
}

Result<std::string> gunzip_head(std::string_view bytes, size_t enough) {
  std::string plain;
  auto done = inflate_all(bytes, enough, plain);
  if (!done && plain.empty()) return std::unexpected(done.error());
  return plain;
}

}  // namespace assay::formats
