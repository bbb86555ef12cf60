// The program that tests start as the reader process.
#include "os/sandbox/child_process.h"
#include "reader/serve.h"

int main() {
  return assay::reader::serve(assay::os::kChannelDescriptor);
}
