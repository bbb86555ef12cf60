#include "run/file/rollback_journal.h"

#include <array>
#include <bit>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

namespace assay::run {
namespace {

constexpr std::array<unsigned char, 8> kMagic{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
constexpr size_t kHeaderBytes = 28;
constexpr uint32_t kToTheEnd = 0xffffffff;  // of a journal that was not synced
constexpr uint64_t kNumberBytes = 4;        // the page's number, before its contents
constexpr uint64_t kAroundPage = 8;         // that, and the checksum after them
constexpr uint64_t kLockByte = 0x40000000;  // the page it lies in holds nothing
constexpr size_t kChecksumStep = 200;

uint32_t word(const unsigned char* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

bool read_at(int fd, uint64_t offset, void* into, size_t size) {
  return ::pread(fd, into, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

bool is_power_within(uint64_t value, uint64_t least, uint64_t most) {
  return std::has_single_bit(value) && value >= least && value <= most;
}

uint32_t checksum(const unsigned char* page, size_t size, uint32_t start) {
  uint32_t sum = start;
  for (size_t i = size - kChecksumStep; i > 0 && i < size; i -= kChecksumStep) sum += page[i];
  return sum;
}

std::unexpected<Error> unsound(const JournaledRun& run, std::string_view why) {
  return fail_with_remedy(
      fmt::format("{}-journal stands beside the run and is not a capture's: {}", run.path, why),
      "if the run should be read without it, move the journal away");
}

}  // namespace

struct RollbackJournal::Header {
  uint32_t records = 0, checksum_start = 0, run_pages = 0, sector_bytes = 0, page_bytes = 0;
};

std::optional<RollbackJournal::Header> RollbackJournal::header_at(uint64_t offset) const {
  std::array<unsigned char, kHeaderBytes> bytes{};
  if (!read_at(fd_.get(), offset, bytes.data(), bytes.size())) return std::nullopt;
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) return std::nullopt;
  Header header{word(&bytes[8]), word(&bytes[12]), word(&bytes[16]), word(&bytes[20]),
                word(&bytes[24])};
  bool sound = is_power_within(header.page_bytes, 512, 65536) &&
               is_power_within(header.sector_bytes, 32, 65536);
  return sound ? std::optional(header) : std::nullopt;
}

bool RollbackJournal::names_super_journal() const {
  std::array<unsigned char, kMagic.size()> end{};
  return bytes_ >= 2 * end.size() &&
         read_at(fd_.get(), bytes_ - end.size(), end.data(), end.size()) && end == kMagic;
}

// False: here the journal ends. A capture that was killed may have left its last record unfinished;
// then it had not begun to change that page.
bool RollbackJournal::take_records(const Header& header, uint64_t& offset) {
  uint64_t size = page_bytes_ + kAroundPage;
  uint64_t records = header.records == kToTheEnd ? (bytes_ - offset) / size : header.records;
  std::vector<unsigned char> record(size);
  for (uint64_t i = 0; i < records; ++i, offset += size) {
    if (!read_at(fd_.get(), offset, record.data(), size)) return false;
    uint32_t page = word(record.data());
    if (page == 0 || page == kLockByte / page_bytes_ + 1) return false;
    const unsigned char* contents = record.data() + kNumberBytes;
    uint32_t expected = word(contents + page_bytes_);
    if (checksum(contents, page_bytes_, header.checksum_start) != expected) return false;
    // Each page is journaled once, before it changes for the first time.
    if (page <= run_pages_) pages_.try_emplace(page, offset + kNumberBytes);
    if (pages_.size() > run_pages_) return false;
  }
  return true;
}

// False: nothing was begun that would have to be taken back.
Result<bool> RollbackJournal::take(const JournaledRun& run) {
  if (names_super_journal()) return unsound(run, "it names another journal");
  auto header = header_at(0);
  if (!header) return false;
  if (run.page_bytes != 0 && header->page_bytes != run.page_bytes)
    return unsound(run, "its pages are of another size than the run's");
  if (uint64_t{header->run_pages} * header->page_bytes > run.bytes + header->page_bytes - 1)
    return unsound(run, "it tells of more pages than the run has");
  page_bytes_ = header->page_bytes;
  run_pages_ = header->run_pages;
  sector_bytes_ = header->sector_bytes;
  for (uint64_t offset = 0; header;) {
    offset += sector_bytes_;
    if (offset > bytes_ || !take_records(*header, offset)) break;
    offset = (offset + sector_bytes_ - 1) / sector_bytes_ * sector_bytes_;
    header = header_at(offset);
    if (header && (header->page_bytes != page_bytes_ || header->sector_bytes != sector_bytes_))
      break;
  }
  return true;
}

Result<std::optional<RollbackJournal>> RollbackJournal::read(Result<FoundFile> found,
                                                             const JournaledRun& run) {
  // Whoever else may write beside the run must not keep it shut.
  if (!found || (found->owner != run.owner && found->owner != 0)) return std::nullopt;
  if (!found->fd.valid()) {
    return fail_with_remedy(
        fmt::format("{} was left by a killed capture, and its journal cannot be read", run.path),
        "read it as its owner", EACCES);
  }
  struct stat status {};
  if (::fstat(found->fd.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1 || status.st_size == 0) return std::nullopt;
  RollbackJournal journal;
  journal.bytes_ = static_cast<uint64_t>(status.st_size);
  journal.fd_ = std::move(found->fd);
  auto taken = journal.take(run);
  if (!taken) return std::unexpected(taken.error());
  if (!*taken) return std::nullopt;
  return std::optional<RollbackJournal>(std::move(journal));
}

std::optional<uint64_t> RollbackJournal::find(uint64_t page) const {
  auto found = page <= UINT32_MAX ? pages_.find(static_cast<uint32_t>(page)) : pages_.end();
  return found == pages_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace assay::run
