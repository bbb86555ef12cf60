// UnionTree: one call tree for all the runs of a comparison, so that a frame of one can be found in
// the other, and what vanished keeps its place.
//
// Nodes are call paths of functions, matched by comparable_name() and comparable_module(). The
// program itself may have another name in each run (server.old, server.new); a module that is not
// known, as in imported profiles, matches any. Parents come before their children. Each run adds
// its time as one column. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/profile/call_tree.h"

namespace assay::analysis {

class UnionTree {
 public:
  static constexpr uint32_t kRoot = 0;
  struct Function {
    std::string name;
    std::string module;  // as the first run with it has it
    bool named = true;
  };
  struct Node {
    uint32_t parent = kRoot;
    uint32_t function = 0;
    std::vector<uint32_t> children;
  };

  UnionTree() : nodes_(1) {}

  // Adds a run: its time by stack, spread over the nodes. Gives the run's number. `program` is the
  // module that is the server itself; empty where that is not known.
  size_t add_run(const CallTree& tree, const std::vector<int64_t>& ns_by_stack,
                 std::string_view program = "");

  const std::vector<Function>& functions() const { return functions_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  // Time of a run in the node itself, and in the node with all that it called; by node. A node that
  // came with a later run may be beyond the end: it had none.
  const std::vector<double>& self_ns(size_t run) const { return self_[run]; }
  const std::vector<double>& total_ns(size_t run) const { return total_[run]; }

 private:
  uint32_t function_of(const analysis::Function& function, std::string_view program);
  uint32_t child_of(uint32_t parent, uint32_t function);

  std::vector<Function> functions_;
  std::map<std::pair<std::string, std::string>, uint32_t> by_name_;  // and module
  std::unordered_map<std::string, uint32_t> by_bare_name_;           // the first of that name
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, uint32_t> by_place_;  // parent and function
  std::vector<std::vector<double>> self_;
  std::vector<std::vector<double>> total_;
};

}  // namespace assay::analysis
