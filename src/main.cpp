#include <cstring>

#include "capture/devices/device_server.h"
#include "cli/cli.h"
#include "os/sandbox/child_process.h"
#include "reader/serve.h"

int main(int argc, char** argv) {
  // Assay starts itself anew as the process that reads files of targets; see reader/serve.h.
  if (argc == 2 && std::strcmp(argv[1], assay::reader::kReaderWord) == 0)
    return assay::reader::serve(assay::os::kChannelDescriptor);
  // And as the process that asks drivers' libraries; see capture/devices/device_server.h.
  if (argc >= 2 && argc <= 3 && std::strcmp(argv[1], assay::capture::kDevicesWord) == 0)
    return assay::capture::serve_devices(assay::os::kChannelDescriptor, argc == 3 ? argv[2] : "");
  return assay::cli::run(argc, argv);
}
