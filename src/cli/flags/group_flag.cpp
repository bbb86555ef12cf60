#include "cli/flags/group_flag.h"

#include "base/file_group.h"

namespace assay::cli {

void add_group_flag(CLI::App& parser) {
  parser
      .add_option_function<std::string>(
          "--group",
          [](const std::string& name) {
            auto chosen = choose_file_group(name);
            if (!chosen) throw CLI::ValidationError("--group", chosen.error().what);
          },
          "Let this group read the files that are written (mode 0640; default: only their owner)")
      ->type_name("GROUP");
}

}  // namespace assay::cli
