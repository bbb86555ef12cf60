// Report: everything a run says, computed once; text, Markdown and JSON only lay it out.
//
// What the stages of an analysis return stands here, too: Vitals (vital.h), Diagnosis, Verdict,
// Gain. analyse() puts them together at the end. Plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/interval.h"
#include "analysis/demand/demands.h"
#include "analysis/measured.h"
#include "analysis/rules/cause.h"
#include "analysis/rules/share_of.h"
#include "analysis/verdict/verdict_kind.h"
#include "analysis/verdict/vital.h"

namespace assay::analysis {

struct Claim {
  VerdictKind kind = VerdictKind::mixed;
  std::string sentence;
  double confidence = 0;             // 0–1
  std::vector<std::string> numbers;  // what it rests on
};

struct Verdict : Claim {
  bool of_whole_run = false;          // though the report is about a part of the run
  std::vector<Claim> secondary;       // also true, less important; or what it would have been
  std::vector<std::string> withheld;  // why, when the kind is `withheld`
  std::vector<std::string> remedies;  // what to do about it, in the same order
  std::string next_step;              // the next experiment, in words
  std::string next_command;           // and as a command; may be empty
};

struct Where {
  std::string symbol;
  std::string file;
  uint32_t line = 0;
};

struct Evidence {
  std::string text;                 // "1,234 samples in malloc below kv::Store::put"
  std::vector<FrameText> frames;    // leaf first; may be empty
  std::vector<std::string> source;  // the lines around `Where`, when known
  uint32_t source_line = 0;         // of the first of them
};

// What a detector found, before it is known what it is worth.
struct Diagnosis {
  std::string id;
  std::string title;
  Cause cause = Cause::on_cpu;
  ShareOf of = ShareOf::nothing;
  Estimate share;
  std::string because;
  std::string recommendation;
  Where where;
  std::vector<Evidence> evidence;
  std::optional<BlockKind> wait;        // of a share of busy time: most of it is of this kind
  double cpu_along = 0;                 // of CPU time: what goes with it, besides its share
  std::optional<size_t> lock;           // of the run's locks: the one it is about
  std::optional<VerdictKind> explains;  // it is the cause of such a verdict
  bool withholds = false;
};

// What removing a finding could bring.
struct Gain {
  std::optional<double> upper_bound;  // throughput: 0.25 is +25 %; absent: not bounded
  std::string text;
  std::optional<Estimate> predicted;  // by the model of demand/prediction.h; absent: not predicted
  double worth = 0;  // to put findings in order: a guess of the same quantity, never shown
};

struct Finding : Diagnosis {
  Gain gain;
};

struct NotBottleneck {
  std::string what;
  std::string text;
  double share = 0;
};

struct SuspectAnswer {
  std::string pattern;
  std::string answer;  // "confirmed", "refuted", "not measurable"
  std::string text;
  double cpu_share = 0, blocked_share = 0;
  std::vector<Evidence> evidence;
};

struct Report : Measured {
  Vitals vitals;
  Demands demands;
  Verdict verdict;
  std::vector<Finding> findings;  // worst first
  std::vector<NotBottleneck> not_bottlenecks;
  std::vector<SuspectAnswer> suspects;
};

}  // namespace assay::analysis
