#include "analysis/idle/idle_reason.h"

#include <array>

#include "analysis/kind_table.h"

namespace assay::analysis {
namespace {

using enum IdleReason;

constexpr std::array<IdleReasonRow, kIdleReasonCount> kRows{{
    {known_loop, "known_loop", true, "a rule knows the loop that waits there"},
    {client_connection, "client_connection", true,
     "it waits for data on a connection that a client opened"},
    {kept_open, "kept_open", true,
     "it waits longer than a second each time on a connection that is only kept open"},
    {clients_only, "clients_only", true,
     "something outside ends it, and the target has no connections but those of its clients"},
    {housekeeping, "housekeeping", true,
     "its process does next to no work beside processes of the same pool that do"},
    {own_clock, "own_clock", true,
     "its pool only sleeps, hands nothing to other threads, and does little work"},
    {own_loop, "own_loop", true,
     "the pool's outermost loop waits there, and the way to it does next to no work"},
    {only_wait_of_loop, "only_wait_of_loop", true,
     "it is the only place where the pool's outermost loop waits, and the way to it does a small "
     "part of the work"},
    {resting_place, "resting_place", true, "the pool has few samples, and rests there"},
    {known_call, "known_call", false, "a rule knows the call as one to another service"},
    {never_for_work, "never_for_work", false, "a wait of this kind is never a wait for work"},
    {asked_outside, "asked_outside", false,
     "it waits for an answer on a connection that the target opened"},
    {sleeps_at_work, "sleeps_at_work", false, "its pool does work, and sleeps between parts of it"},
    {inside_work, "inside_work", false,
     "the pool has a wait closer to its outermost loop; this one is made inside its work"},
    {asks_first, "asks_first", false,
     "the same branch wakes another thread before it waits, and another thread ends the wait: it "
     "waits for an answer"},
    {branch_works, "branch_works", false, "the branch that leads to it does a part of the work"},
    {no_resting_place, "no_resting_place", false,
     "the pool has few samples and waits in several places"},
    {no_evidence, "no_evidence", false, "nothing is known of what its pool does"},
}};
static_assert(is_complete(kRows, kIdleReasonCount));

}  // namespace

std::span<const IdleReasonRow> idle_reasons() {
  return kRows;
}

const IdleReasonRow& describe(IdleReason reason) {
  return row_of(kRows, reason);
}

}  // namespace assay::analysis
