// RoleBook: gives each process of a target a role: "main", "worker 0", or the program's name.
//
// One root process: "main". Several root processes: "worker 0", "worker 1", … when all run the same
// program, else the program's name. Descendants: "worker N" for a process that runs the same
// program as a root, in the order of assignment; any other process gets its program's name,
// numbered from the second on ("gzip", "gzip 1"). A role never changes. Not thread-safe.
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
  // The programs of the root processes; called once, first. Returns their roles in the same order.
  std::vector<std::string> assign_roots(const std::vector<std::string>& exes);
  // A root process now runs this program: descendants that run it are workers too.
  void add_root_program(const std::string& exe) { root_exes_.insert(exe); }
  // The role of one more descendant.
  std::string assign(const std::string& exe);
  // Frees the role of a process that turned out to be no worker, because it has executed another
  // program.
  void give_back(const std::string& role);

 private:
  std::string next_worker();
  std::string by_name(const std::string& exe);

  std::set<std::string> root_exes_;
  uint32_t workers_ = 0;
  std::map<std::string, uint32_t> named_;
};

}  // namespace assay::target
