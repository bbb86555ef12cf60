#include "analysis/compare/sentence.h"

#include <gmock/gmock.h>

namespace assay::analysis {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Comparison with_cpu(Outcome outcome, double ratio, double low, double high) {
  Comparison out;
  out.per = Per::request;
  Measure cpu;
  cpu.id = "cpu_per_request";
  cpu.name = "CPU";
  cpu.ratio = ratio;
  cpu.low = low;
  cpu.high = high;
  cpu.outcome = outcome;
  out.measures.push_back(cpu);
  return out;
}

Change changed(const std::string& function, double ratio) {
  Change change;
  change.function = function;
  change.time.ratio = ratio;
  return change;
}

TEST(Sentence, AChangeComesWithItsInterval) {
  EXPECT_EQ(sentence_of(with_cpu(Outcome::higher, 1.1, 1.05, 1.15)),
            "CPU per request changed by +10.0 % (95 % interval +5.0 to +15.0 %).");
}

TEST(Sentence, ADifferenceBelowTheFloorIsNotCalledNone) {
  std::string text = sentence_of(with_cpu(Outcome::undecided, 1.04, 1.013, 1.067));
  EXPECT_THAT(text, AllOf(HasSubstr("differs by +4.0 %"), HasSubstr("+1.3 to +6.7 %"),
                          HasSubstr("more than the 2 %"), Not(HasSubstr("no change"))));
}

TEST(Sentence, NothingShownIsNotCalledEqual) {
  EXPECT_THAT(sentence_of(with_cpu(Outcome::undecided, 1.01, 0.97, 1.05)),
              AllOf(HasSubstr("no change shown"), HasSubstr("cannot exclude one")));
}

TEST(Sentence, NamesTheFunctionThatWholeRunsHide) {
  Comparison comparison = with_cpu(Outcome::undecided, 1.01, 0.97, 1.05);
  comparison.changes = {changed("score", 1.1)};
  EXPECT_THAT(sentence_of(comparison), EndsWith(" One function changed: score (+10.0 %)."));
  comparison.changes.push_back(changed("parse", 0.9));
  EXPECT_THAT(sentence_of(comparison),
              EndsWith(" 2 functions changed, most of all score (+10.0 %)."));
}

TEST(Sentence, OneRunASideNamesNoFunctions) {
  Comparison comparison = with_cpu(Outcome::descriptive, 1.2, 0, 0);
  comparison.descriptive = true;
  comparison.changes = {changed("score", 1.1)};
  EXPECT_THAT(sentence_of(comparison),
              AllOf(HasSubstr("one run on a side"), Not(HasSubstr("score"))));
}

}  // namespace
}  // namespace assay::analysis
