// The program that tests start as the process of device_server.h: "__devices LIBRARY".
#include "capture/devices/device_server.h"
#include "os/sandbox/child_process.h"

int main(int argc, char** argv) {
  return assay::capture::serve_devices(assay::os::kChannelDescriptor, argc == 3 ? argv[2] : "");
}
