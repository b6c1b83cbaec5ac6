// SPDX-License-Identifier: Apache-2.0
#include "rollout/RoundReport.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>
#include <vector>

#include "results/MetricTable.hpp"
#include "results/SchemaCheck.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using taper::test::Scratch;

namespace {

SampleSummary response(std::int64_t prompt, int tokens, FinishReason finish) {
  SampleSummary s;
  s.id.prompt = prompt;
  s.response_tokens = tokens;
  s.finish = finish;
  return s;
}

// Of three prompts two are kept.
RoundReport short_round() {
  const Round round{RoundKind::kShort, {10, 11, 12}, {}, 1, {2, 1}, true};
  const std::vector<SampleSummary> samples{response(0, 5, FinishReason::kEos),
                                           response(1, 7, FinishReason::kAbort),
                                           response(2, 7, FinishReason::kLength)};
  const std::vector<bool> kept = kept_rows(round, samples);
  CHECK(kept == std::vector<bool>{true, false, true});
  RoundReport report(round, samples, kept);
  report.waiting = 1;
  return report;
}

RoundReport long_round() {
  const Round round{RoundKind::kLong, {11, 14}, {}, 1, {2, 1}};
  const std::vector<SampleSummary> samples{response(3, 50, FinishReason::kEos),
                                           response(4, 60, FinishReason::kEos)};
  return {round, samples, kept_rows(round, samples)};
}

}  // namespace

TEST_CASE("totals of the rounds of an iteration") {
  const std::vector<RoundReport> rounds{short_round(), long_round()};
  const MetricValues list = round_metrics(rounds);
  const std::map<std::string, double> m(list.begin(), list.end());
  for (const auto& [name, value] : m) CHECK(meaning_of("/metrics/" + name) != nullptr);
  CHECK(m.at("rollout/short_rounds") == 1);
  CHECK(m.at("rollout/long_rounds") == 1);
  CHECK(m.at("rollout/started_responses") == 5);
  CHECK(m.at("rollout/kept_responses") == 4);
  CHECK(m.at("rollout/aborted_responses") == 1);
  CHECK(m.at("rollout/unkept_tokens") == 7);
  CHECK(m.at("rollout/longest_kept") == 60);
  CHECK(m.at("rollout/waiting_prompts") == 0);
}

TEST_CASE("rounds in run.h5") {
  const Scratch scratch;
  {
    RunFile file(scratch / "run.h5");
    add_rounds(file, 3, std::vector{short_round(), long_round()});
    file.save();
  }
  const SchemaReport schema = check_schema(scratch / "run.h5");
  CHECK(schema.faults == std::vector<std::string>{});
  CHECK(schema.notes == std::vector<std::string>{});
  const Hdf5File file = Hdf5File::open_read(scratch / "run.h5");
  using Integers = std::vector<std::int64_t>;
  CHECK(file.read<std::int64_t>("/rounds/step").values == Integers{3, 3});
  CHECK(file.read_strings("/rounds/kind") == std::vector<std::string>{"short", "long"});
  CHECK(file.read<std::int64_t>("/rounds/prompts").values == Integers{3, 2});
  CHECK(file.read<std::int64_t>("/rounds/tokens").values == Integers{19, 110});
  CHECK(file.read<std::int64_t>("/rounds/longest_kept").values == Integers{7, 60});
  CHECK(file.read<std::int64_t>("/rounds/waiting").values == Integers{1, 0});
}
