#include "inject/inproc/index_page.h"

namespace assay::inproc {

void write_index_page(ByteBuffer& out) {
  out.append("<html><body><a href=profile?seconds=5>profile</a></body></html>\n");
}

}  // namespace assay::inproc
