// SPDX-License-Identifier: Apache-2.0
#include "run/EvaluationHistory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "base/Error.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

EvaluationHistory history_of(const std::vector<double>& values, BestOptions options) {
  EvaluationHistory history(std::move(options));
  std::int64_t iteration = 0;
  for (const double value : values) {
    history.note(iteration, value);
    iteration += 5;
  }
  return history;
}

}  // namespace

TEST_CASE("the best is the first of the largest") {
  const auto history = history_of({0.1, 0.5, 0.4, 0.5, NAN}, {"val/x/avg@1", 0, 0.0});
  REQUIRE(history.best());
  CHECK(history.best()->iteration == 5);
  CHECK(history.best()->value == 0.5);
  CHECK(!history.is_exhausted());  // without patience never
  CHECK(!EvaluationHistory().best());
  CHECK(history_of({NAN}, {"m", 1, 0.0}).best());  // something is the best of one
}

TEST_CASE("of figures only the metric counts, and of losses the smallest is the best") {
  EvaluationHistory score({"val/score/mean", 0, 0.0}), loss({"val/loss", 0, 0.0});
  for (EvaluationHistory* history : {&score, &loss}) {
    history->note_figures(1, {{"val/loss", 2.0}, {"val/score/mean", 0.5}});
    history->note_figures(2, {{"val/loss", 1.0}, {"val/score/mean", 0.25}});
    history->note_figures(3, {{"train/loss", 0.5}});
    CHECK(history->entries().size() == 2);
  }
  CHECK(score.best() == EvaluationHistory::Entry{1, 0.5});
  CHECK(loss.best() == EvaluationHistory::Entry{2, -1.0});
}

TEST_CASE("patience ends where nothing is better by more than the least progress") {
  const std::vector<double> values{0.1, 0.2, 0.205, 0.21, 0.2};
  CHECK(history_of(values, {"m", 2, 0.0}).without_progress() == 1);
  CHECK(history_of(values, {"m", 3, 0.02}).without_progress() == 3);
  CHECK(history_of(values, {"m", 3, 0.02}).is_exhausted());
  CHECK(!history_of(values, {"m", 4, 0.02}).is_exhausted());
  // Small steps add up: each is held against the last progress, not against the one before.
  CHECK(history_of({0.1, 0.115, 0.13}, {"m", 3, 0.02}).without_progress() == 0);
  CHECK(history_of({0.5, 0.5}, {"m", 1, 0.0}).is_exhausted());
}

TEST_CASE("a run that goes on from before forgets, and notes the same again without a trace") {
  const BestOptions options{"m", 2, 0.0};
  auto history = history_of({0.1, 0.5, 0.4, 0.3}, options);
  history.forget_after(5);
  CHECK(history.entries() == history_of({0.1, 0.5}, options).entries());
  history.note(5, 0.5);
  CHECK(history.entries() == history_of({0.1, 0.5}, options).entries());
  history.note(10, 0.4);
  history.note(15, 0.3);
  CHECK(history.is_exhausted());
}

TEST_CASE("what an end between evaluations added can be forgotten") {
  auto history = history_of({0.1, 0.5}, {"m", 2, 0.0});
  history.note(7, 0.6);
  history.forget_between(5);
  CHECK(history.entries() == history_of({0.1, 0.5}, {"m", 2, 0.0}).entries());
}

TEST_CASE("the record survives as text") {
  const BestOptions options{"val/x/avg@4", 2, 0.01};
  const auto history = history_of({0.1, 1.0 / 3.0, NAN}, options);
  const std::string text = history.to_json("checkpoints/iter_000005");
  CHECK_THAT(text, ContainsSubstring("\"checkpoint\": \"checkpoints/iter_000005\"") &&
                       ContainsSubstring("\"iteration\": 5"));
  CHECK(EvaluationHistory::from_json(text, "best.json", options).entries() == history.entries());
  CHECK(EvaluationHistory::from_json(text, "best.json", {"other", 0, 0.0}).entries().empty());
  for (const char* broken : {"{}", "{\"metric\": 1}", "[", "{\"metric\": \"val/x/avg@4\"}"})
    CHECK_THROWS_MATCHES(EvaluationHistory::from_json(broken, "best.json", options), Error,
                         MessageMatches(ContainsSubstring("best.json")));
}

TEST_CASE("best.json names the checkpoint of the best weights where there is one") {
  const test::Scratch scratch;
  const BestOptions options{"val/x/avg@4", 2, 0.01};
  const auto history = history_of({0.1, 0.5, 0.4}, options);
  const CheckpointStore checkpoints(scratch / "checkpoints", 1);
  write_best_file(scratch.path(), history, checkpoints);
  CHECK(test::slurp(scratch / "best.json") == history.to_json(""));
  std::filesystem::create_directories(scratch / "checkpoints/iter_000005");
  test::spill(scratch / "checkpoints/iter_000005/manifest.json", "{}");
  write_best_file(scratch.path(), history, checkpoints);
  CHECK(test::slurp(scratch / "best.json") == history.to_json("checkpoints/iter_000005"));
}
