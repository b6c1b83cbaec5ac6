// SPDX-License-Identifier: Apache-2.0
#include "train/TrainedDrafts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "train/TrainRuns.hpp"

using namespace taper;
using namespace taper::test;
namespace fs = std::filesystem;

namespace {

RunOptions drafted_run(const TrainRuns& f, const std::string& output) {
  RunOptions options = small_run(f.path("model"), f.path(output));
  options.training.iterations = 4;
  // A policy that stays what it is, and has something to say.
  options.schedule.peak = 1e-6;
  options.rollout.sampling.temperature = 0.2f;
  options.rollout.speculation.mode = SpeculationMode::kFixed;
  options.rollout.speculation.draft_length = 2;
  options.rollout.speculation.draft_model = f.path("draft");
  options.rollout.speculation.train_steps = 4;
  options.rollout.speculation.train_rate = 3e-3;
  return options;
}

std::string draft_weights(const TrainRuns& f, const std::string& output, int n) {
  return slurp(RunDirectory(f.path(output)).checkpoint(n) / "draft/model.safetensors");
}

}  // namespace

TEST_CASE("a draft model that follows the policy changes nothing of it, and resumes with it") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"), '2');
  make_model(f.ranks, f.path("draft"), '1');
  RunOptions plain = drafted_run(f, "plain");
  plain.rollout.speculation = {};
  run(f.ranks, plain);
  f.run_straight_and_in_parts(drafted_run(f, ""));
  if (f.ranks.rank() != 0) return;
  CHECK((f.weights("straight", 4) == f.weights("plain", 4)));
  CHECK((draft_weights(f, "straight", 4) == draft_weights(f, "parts", 4)));
  CHECK((draft_weights(f, "straight", 4) != draft_weights(f, "straight", 1)));
  CHECK_FALSE(fs::exists(RunDirectory(f.path("plain")).checkpoint(4) / "draft"));
  const auto first = f.metrics("straight", 1), last = f.metrics("straight", 4);
  CHECK(last.at("speculation/train_loss") < first.at("speculation/train_loss"));
  CHECK(first.at("speculation/train_grad_norm") > 0.0);
  CHECK(first.contains("timing_s/update_draft"));
  CHECK(CheckpointStore::problems(RunDirectory(f.path("straight")).checkpoint(4)).empty());
}

TEST_CASE("a checkpoint without the draft model, or of another one, can be resumed from") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"), '2');
  make_model(f.ranks, f.path("draft"), '1');
  make_model(f.ranks, f.path("deeper"), '2');
  RunOptions options = drafted_run(f, "run");
  options.training.iterations = 1;
  options.rollout.speculation = {};
  run(f.ranks, options);
  options = drafted_run(f, "run");
  options.training.iterations = 2;
  run(f.ranks, options, "auto");
  options.training.iterations = 3;
  options.rollout.speculation.draft_model = f.path("deeper");
  run(f.ranks, options, "auto");
  if (f.ranks.rank() != 0) return;
  CHECK(!draft_weights(f, "run", 2).empty());
  CHECK(draft_weights(f, "run", 3).size() > draft_weights(f, "run", 2).size());
}
