// The names of Linux system calls on x86-64.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::model {

// "futex" for 202; empty when there is no such call. Pure.
std::string_view syscall_name(uint16_t number);

}  // namespace assay::model
