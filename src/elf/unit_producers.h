// for_each_producer: what each compilation unit says of the compiler that made it.
//
// In: an ELF file with .debug_info (compressed or not, DWARF 2 to 5). Out: the texts of
// DW_AT_producer, in the order of the units. Only the header and the root entry of a unit are read,
// so that debug information of gigabytes costs little. Texts that are in another file (dwz's, or a
// .dwo) are left out. Pure. Failures: told by how it ended; what is malformed ends the walk.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "elf/elf_file.h"

namespace assay::elf {

enum class ProducersEnd : uint8_t { whole, unreadable, too_many };

ProducersEnd for_each_producer(ElfFile& file, uint32_t most_units,
                               const std::function<void(std::string_view)>& visit);

}  // namespace assay::elf
