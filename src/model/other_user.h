// OtherUser: a program beside the target that used CPU or disk in the window, and what it has to do
// with the target. Its processes of one name and service are one user.
//
// The capture writes them as facts, the analysis reads them back: both by the functions below, so
// that the keys stand in one place. Names are a foreign process's own and may hold anything; who
// shows them escapes them. Pure; a fact that does not read like one of ours is left out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "model/run_info.h"

namespace assay::model {

enum class Relation : uint8_t { load_generator, connected, stranger, kernel, unknown };

struct RelationRow {
  Relation kind;
  std::string_view id;       // in facts and JSON
  std::string_view name;     // for people
  std::string_view meaning;  // for docs/
};

inline constexpr std::array<RelationRow, 5> kRelations{{
    {Relation::load_generator, "load_generator", "load generator",
     "it opened connections that the target accepted"},
    {Relation::connected, "connected", "connected to the target",
     "it holds the other end of a connection that the target opened, or of a pipe or socket pair, "
     "or it is the target's parent or child"},
    {Relation::stranger, "stranger", "stranger", "none of these, as far as this host shows"},
    {Relation::kernel, "kernel", "kernel", "a thread of the kernel; it works for all"},
    {Relation::unknown, "unknown", "unknown", "its open files may not be read, or it ended first"},
}};
inline constexpr size_t kRelationCount = kRelations.size();

std::string_view relation_id(Relation relation);
std::string_view relation_name(Relation relation);
std::optional<Relation> relation_of(std::string_view id);

struct OtherUser {
  std::string name;  // comm
  pid_t pid = 0;     // of its process, or of the one of several that used most; 0: none
  size_t processes = 1;
  std::string service;  // systemd unit, container or control group; "" when it is in none
  double cpus = 0;
  std::optional<double> disk_bytes_per_s;  // read and written; absent: may not be read
  Relation relation = Relation::unknown;
};

struct OtherUsers {
  std::vector<OtherUser> largest;  // most CPU first
  // CPUs of all others by relation, also of those that are not listed; absent: not recorded.
  std::optional<std::array<double, kRelationCount>> cpus;

  std::optional<double> cpus_of(Relation relation) const {
    if (!cpus) return {};
    return (*cpus)[static_cast<size_t>(relation)];
  }
};

// Leaves the `count` largest users of CPU and as many of disk, most CPU first.
void keep_largest(std::vector<OtherUser>& users, size_t count);

std::vector<Fact> to_facts(const OtherUsers& others);  // scopes "others" and "other N"
OtherUsers others_in(const std::vector<Fact>& facts);

}  // namespace assay::model
