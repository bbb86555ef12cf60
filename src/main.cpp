#include <cstring>

#include "cli/cli.h"
#include "os/sandbox/child_process.h"
#include "reader/serve.h"

int main(int argc, char** argv) {
  // Assay starts itself anew as the process that reads files of targets; see reader/serve.h.
  if (argc == 2 && std::strcmp(argv[1], assay::reader::kReaderWord) == 0)
    return assay::reader::serve(assay::os::kChannelDescriptor);
  return assay::cli::run(argc, argv);
}
