// RoleBook: gives each process of a target the name people know it by.
//
// One process on top: "main". Several on top: "worker 0", "worker 1", … when all run the same
// program, else the program's name. Below: "worker N" for a process that runs the same program as
// the top, in the order they are given; any other program by its name, numbered from the second on
// ("gzip", "gzip 1"). A role once given stays. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::target {

// Last part of a path, without " (deleted)".
std::string program_name(std::string_view exe);

class RoleBook {
 public:
  // The programs on top, once and first. Returns their roles in the same order.
  std::vector<std::string> assign_roots(const std::vector<std::string>& exes);
  // A process on top now runs this program: its likes below are workers too.
  void add_root_program(const std::string& exe) { root_exes_.insert(exe); }
  // The role of one more process below them.
  std::string assign(const std::string& exe);
  // The role goes back when its process turned out to be no worker: it went on to exec a program.
  void give_back(const std::string& role);

 private:
  std::string next_worker();
  std::string by_name(const std::string& exe);

  std::set<std::string> root_exes_;
  uint32_t workers_ = 0;
  std::map<std::string, uint32_t> named_;
};

}  // namespace assay::target
