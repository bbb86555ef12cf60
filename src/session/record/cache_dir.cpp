#include "session/record/cache_dir.h"

#include <cstdlib>

namespace assay::session {

std::string default_cache_dir() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::string(cache) + "/assay";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::string(home) + "/.cache/assay";
  }
  return "";
}

}  // namespace assay::session
