// What a fuzz target needs beside libFuzzer's own main: its corpus, which the target makes itself,
// and earlier findings (FOUND/TARGET), written as files to the folder that libFuzzer starts from:
// the first folder among the arguments.
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  namespace fs = std::filesystem;
  for (int i = 1; i < *argc; ++i) {
    fs::path folder((*argv)[i]);
    if (!fs::is_directory(folder)) continue;
    size_t number = 0;
    for (const std::vector<uint8_t>& bytes : fuzz_corpus()) {
      std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    fs::path found = FOUND / fs::path((*argv)[0]).filename();
    if (fs::exists(found)) fs::copy(found, folder, fs::copy_options::skip_existing);
    break;
  }
  return 0;
}
