#include "unwind/table/build_from_file.h"

#include "unwind/table/table_builder.h"

namespace assay::unwind {

Result<std::vector<std::byte>> build_from_file(int fd, const std::string& build_id) {
  auto image = elf::ElfFile::open(fd);
  if (!image) return std::unexpected(image.error());
  return build_table(**image, build_id);
}

}  // namespace assay::unwind
