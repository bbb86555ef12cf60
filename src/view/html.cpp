#include "view/html.h"

#include <array>

#include <zlib.h>

#include "view/queries.h"

// The built page, put into the program by the assembler: no copy of it as C++ text is needed.
asm(".section .rodata\n"
    ".global assay_page_begin\n"
    ".global assay_page_end\n"
    "assay_page_begin:\n"
    ".incbin \"" ASSAY_PAGE
    "\"\n"
    "assay_page_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char assay_page_begin[];
extern "C" const char assay_page_end[];

namespace assay::view {
namespace {

constexpr std::string_view kDataMark = "<!--assay-data-->";
constexpr std::string_view kServedPolicy = "connect-src 'self'";
constexpr std::string_view kFilePolicy = "connect-src 'none'";
constexpr size_t kMostCells = 400'000;    // about 3 MB compressed
constexpr uint32_t kLaneCells = 300'000;  // threads × bins
constexpr size_t kMostPoints = 300;

Result<std::string> gzip(const std::string& bytes) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail("cannot compress: out of memory");
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail("cannot compress the page's data");
  return out;
}

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      word = word << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    }
    for (int k = 0; k < 4; ++k) {
      bool padding = i + static_cast<size_t>(k) > bytes.size();
      text += padding ? '=' : kDigits[word >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

// name length, name, byte length, bytes: little endian 32 bits each.
void put_part(std::string& bundle, std::string_view name, const std::string& bytes) {
  auto put_length = [&](size_t length) {
    for (int shift = 0; shift < 32; shift += 8) bundle += static_cast<char>(length >> shift);
  };
  put_length(name.size());
  bundle += name;
  put_length(bytes.size());
  bundle += bytes;
}

// As fine in time as the size allows; by thread unless even one bin is too much.
Result<std::string> fitting_cells(RunIndex& run, const Selection& all) {
  for (uint32_t bins : {400u, 100u, 30u, 10u, 1u}) {
    auto cells = cell_columns(run, all, {bins, true, kMostCells});
    if (!cells || !cells->empty()) return cells;
  }
  return cell_columns(run, all, {1, false, SIZE_MAX});
}

uint32_t lane_bins(const RunIndex& run) {
  auto threads = static_cast<uint32_t>(std::max<size_t>(1, run.contents().threads.size()));
  return std::clamp(kLaneCells / threads, 50u, 1500u);
}

}  // namespace

std::string_view page_html() {
  return {assay_page_begin, static_cast<size_t>(assay_page_end - assay_page_begin)};
}

Result<std::string> render_html(RunIndex& run, const run::Reader& reader,
                                const std::string& report_json) {
  auto all = select(run, {});
  if (!all) return std::unexpected(all.error());
  all->reader = &reader;
  std::string bundle;
  put_part(bundle, "meta", meta_json(run));
  put_part(bundle, "report", report_json);
  put_part(bundle, "tree", tree_columns(run));
  std::array<std::pair<std::string_view, Result<std::string>>, 8> parts{
      {{"cells", fitting_cells(run, *all)},
       {"lanes", timeline_columns(run, *all, {lane_bins(run), true, SIZE_MAX})},
       {"waits", wait_columns(run, *all, 500)},
       {"locks", lock_columns(run, *all, 500)},
       {"lines", line_columns(run, *all)},
       {"heap", heap_columns(run, *all)},
       {"source", hot_source_json(run, *all)},
       {"series", series_columns(run, reader, kMostPoints)}}};
  for (const auto& [name, part] : parts) {
    if (!part) return std::unexpected(part.error());
    put_part(bundle, name, *part);
  }
  auto packed = gzip(bundle);
  if (!packed) return std::unexpected(packed.error());
  std::string page(page_html());
  size_t mark = page.find(kDataMark);
  size_t policy = page.find(kServedPolicy);
  if (mark == page.npos || policy == page.npos || policy > mark) {
    return fail("the built page has no place for data");
  }
  page.replace(mark, kDataMark.size(),
               "<script type=\"application/octet-stream\" id=\"assay-data\">" + base64(*packed) +
                   "</script>");
  return page.replace(policy, kServedPolicy.size(), kFilePolicy);
}

}  // namespace assay::view
