// symbolize: names addresses of one file, for bench/symbols and its check against addr2line.
//
//   symbolize [--cache DIR] [--no-inlines] [--quiet] FILE < ADDRESSES
//
// ADDRESSES are link-time addresses in hex, one a line, as addr2line takes them. Prints each address,
// then for each location, innermost first, the function, the linker's name and file:line on a line each.
// On stderr: seconds and peak memory.
#include <fcntl.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "symbol/elf_file.h"
#include "symbol/symbolizer.h"

using namespace assay;

int main(int argc, char** argv) {
  symbol::Options options;
  bool quiet = false;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--cache" && i + 1 < argc) {
      options.cache_dir = argv[++i];
    } else if (arg == "--no-inlines") {
      options.inlines = false;
    } else if (arg == "--quiet") {
      quiet = true;
    } else {
      path = std::filesystem::absolute(arg);
    }
  }
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto source = symbol::ByteSource::from_file(std::move(fd));
  if (!source) return fmt::print(stderr, "symbolize: {}: {}\n", path, source.error().text()), 1;
  auto elf = symbol::ElfFile::open(std::move(*source));
  if (!elf) return fmt::print(stderr, "symbolize: {}: {}\n", path, elf.error().text()), 1;

  std::vector<uint64_t> addresses;
  for (std::string line; std::getline(std::cin, line);) addresses.push_back(std::stoull(line, nullptr, 16));

  auto begin = std::chrono::steady_clock::now();
  {
    auto symbolizer = symbol::Symbolizer::create(options);
    model::Module module{model::ModuleId{0}, model::ModuleKind::elf, path, ""};
    symbolizer->add_module(0, {}, module);
    std::vector<model::Frame> frames;
    for (uint64_t address : addresses) {
      frames.push_back({module.id, (*elf)->to_offset(address).value_or(address)});
    }
    auto chains = symbolizer->resolve_all(frames);
    for (size_t i = 0; i < frames.size() && !quiet; ++i) {
      fmt::print("{:#x}\n", addresses[i]);
      for (const auto& location : chains[i]) {
        fmt::print("{}\n{}\n{}:{}\n", location.function, location.system_name, location.file, location.line);
      }
    }
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print(stderr, "{:.3f} s, {:.1f} MB peak, {} addresses\n", seconds.count(), usage.ru_maxrss / 1024.0,
             addresses.size());
}
