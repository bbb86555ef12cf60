#include "formats/import/reading.h"

#include "model/code/code_origin.h"

namespace assay::formats {

model::ModuleId module_by_name(RunBuilder& builder, std::string_view name,
                               const std::string& build_id, uint64_t an_address) {
  using enum model::ModuleKind;
  constexpr uint64_t kKernelHalf = 0xffff800000000000;
  name = stored(name);
  bool kernel_name = name.starts_with("[kernel") || name.starts_with("[guest.kernel") ||
                     name.starts_with("vmlinux") || name.ends_with(".ko") ||
                     name.find(".ko.") != name.npos;
  if (kernel_name || an_address >= kKernelHalf) return builder.module(kernel, "[kernel]", "");
  if (name == "[vdso]") return builder.module(vdso, "[vdso]", build_id);
  if (model::code_origin(name) == model::CodeOrigin::generated)
    return builder.module(anonymous, "[anon]", "");
  if (name.empty() || name == "[unknown]") return builder.module(elf, "[unknown]", "");
  return builder.module(elf, std::string(name), build_id);
}

std::optional<model::FrameId> marker_frame(RunBuilder& builder, std::string_view name) {
  if (!name.starts_with('[')) return std::nullopt;
  for (int end = 1; end < model::kStackEndCount; ++end) {
    if (name != model::stack_end_text(static_cast<model::StackEnd>(end))) continue;
    model::ModuleId assay = builder.module(model::ModuleKind::marker, "[assay]", "");
    return builder.frame({assay, static_cast<uint64_t>(end)});
  }
  return std::nullopt;
}

}  // namespace assay::formats
