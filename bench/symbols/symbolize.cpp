// symbolize: names addresses, for bench/symbols and its check against addr2line.
//
//   symbolize [--cache DIR] [--no-inlines] [--quiet] FILE < ADDRESSES
//   symbolize [--cache DIR] [--no-inlines] [--quiet] < FRAMES
//
// ADDRESSES are link-time addresses in hex, one a line, as addr2line takes them; FRAMES are lines
// of a file offset in hex and the file. Prints each address, then for each location, innermost
// first, the function, the linker's name and file:line on a line each. On stderr: seconds and peak
// memory.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "elf/elf_file.h"
#include "symbol/symbolizer.h"

using namespace assay;

namespace {

struct Arguments {
  symbol::Options options;
  bool quiet = false;
  std::string path;
};

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--cache" && i + 1 < argc) {
      out.options.cache_dir = argv[++i];
    } else if (arg == "--no-inlines") {
      out.options.inlines = false;
    } else if (arg == "--quiet") {
      out.quiet = true;
    } else {
      out.path = std::filesystem::absolute(arg);
    }
  }
  return out;
}

Result<std::unique_ptr<elf::ElfFile>> open_elf(const std::string& path) {
  auto source = elf::ByteSource::from_file(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  if (!source) return std::unexpected(source.error());
  return elf::ElfFile::open(std::move(*source));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments = parse(argc, argv);
  std::unique_ptr<elf::ElfFile> elf;
  if (!arguments.path.empty()) {
    auto opened = open_elf(arguments.path);
    if (!opened) {
      fmt::print(stderr, "symbolize: {}: {}\n", arguments.path, opened.error().text());
      return 1;
    }
    elf = std::move(*opened);
  }
  std::vector<uint64_t> addresses;
  std::vector<model::Frame> frames;
  model::ModuleTable modules;
  for (std::string line; std::getline(std::cin, line);) {
    size_t end = 0;
    uint64_t address = std::stoull(line, &end, 16);
    std::string path = elf ? arguments.path : line.substr(end + 1);
    addresses.push_back(address);
    frames.push_back({modules.intern(model::ModuleKind::elf, path, ""),
                      elf ? elf->to_offset(address).value_or(address) : address});
  }

  auto begin = std::chrono::steady_clock::now();
  {
    auto symbolizer = symbol::Symbolizer::create(arguments.options);
    for (const auto& module : modules.all()) symbolizer->add_module(0, {}, module);
    auto chains = symbolizer->resolve_all(frames);
    for (size_t i = 0; i < frames.size() && !arguments.quiet; ++i) {
      fmt::print("{:#x}\n", addresses[i]);
      for (const auto& location : chains[i]) {
        fmt::print("{}\n{}\n{}:{}\n", location.function, location.system_name, location.file,
                   location.line);
      }
    }
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print(stderr, "{:.3f} s, {:.1f} MB peak, {} addresses\n", seconds.count(),
             usage.ru_maxrss / 1024.0, addresses.size());
}
