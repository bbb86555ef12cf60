// Style: how text for a terminal is laid out. Colours only where they were asked for.
#pragma once

namespace assay::report {

struct Style {
  bool colour = false;
  int width = 100;  // columns, 80 to 240; what is too long is elided
};

}  // namespace assay::report
