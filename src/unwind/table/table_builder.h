// Builds the unwind table of one module from its ELF file.
//
// In: the file, and its build id when known. Out: the table's bytes (table_format.h). Sources,
// first found wins for an address: .eh_frame, .debug_frame (also of a separate debug file), for
// code without either the few rules that are certain (returns from signal handlers and clone3 by
// their instructions, PLT stubs, the known first functions of a thread by their symbol), and last
// .gopclntab of Go programs (go_functions.h). Failures: an Error for what is no ELF file of this
// architecture; malformed call-frame information yields rows that say so. Time and memory are
// bounded by the file's size, whatever it holds.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "elf/elf_file.h"

namespace assay::unwind {

using elf::ElfFile;

Result<std::vector<std::byte>> build_table(ElfFile& image, std::string_view build_id,
                                           ElfFile* debug_image = nullptr);

}  // namespace assay::unwind
