// SPDX-License-Identifier: Apache-2.0
//
// Training runs that learn from prompts while others are generated.
#include "train/EarlyLearning.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "train/TrainRuns.hpp"

using namespace taper;
using namespace taper::test;

namespace {

struct EarlyRuns : TrainRuns {
  EarlyRuns() { make_model(ranks, path("model")); }

  // Most responses are short and a few long: whoever has none of these waits.
  RunOptions options(const std::string& output) const {
    RunOptions o = small_run(path("model"), path(output));
    o.rollout.prompts = 8;
    o.rollout.max_new_tokens = 256;
    o.rollout.lengths = "straggler";
    o.training.early_learning = true;
    o.training.max_tokens = 512;
    o.training.bundle_tokens = 128;
    o.training.mini_batches = 1;
    o.checkpoint.every = 0;
    return o;
  }

  void check_equal(const std::string& expected, const std::string& output) const {
    barrier(ranks.world());
    const bool same_weights = weights(expected, 2) == weights(output, 2);
    CHECK(same_weights);
    if (ranks.rank() != 0) return;
    for (int i = 1; i <= 2; ++i)
      for (const auto& [name, value] : metrics(expected, i)) {
        if (!name.starts_with("actor/") || name == "actor/early_token_share") continue;
        INFO(output << ", iteration " << i << ": " << name);
        CHECK(metrics(output, i).at(name) == value);
      }
  }

  // Of rank 0.
  double early_share(const std::string& output) const {
    return metrics(output, 2).at("actor/early_token_share");
  }
};

}  // namespace

TEST_CASE("when and where prompts are learned from changes no bit") {
  EarlyRuns f;
  for (const int mini_batches : {1, 3}) {
    INFO(mini_batches << " mini-batches");
    const std::string suffix = std::to_string(mini_batches);
    const auto run_as = [&](const std::string& name, const auto& set) {
      RunOptions o = f.options(name + suffix);
      o.training.mini_batches = mini_batches;
      set(o);
      run(f.ranks, o);
      f.check_equal("alone" + suffix, name + suffix);
    };
    // One rank has nobody to wait for.
    run_as("alone", [](RunOptions& o) { o.placement.policy = o.placement.generation = "0-0"; });
    if (f.ranks.rank() == 0) CHECK(f.early_share("alone" + suffix) == 0.0);
    run_as("flat", [](RunOptions&) {});
    if (f.ranks.size() == 1) continue;
    run_as("apart", [](RunOptions& o) { o.placement.strategy = PlacementStrategy::kSeparation; });
    if (f.ranks.rank() == 0) CHECK(f.early_share("apart" + suffix) > 0.0);
    if (f.ranks.size() % 2 != 0) continue;
    run_as("split", [](RunOptions& o) { o.training.tp = 2; });
    run_as("grouped", [](RunOptions& o) { o.training.tp = o.rollout.tp = 2; });
  }
}

TEST_CASE("a run that learns early and is resumed has the bits of one that is not") {
  EarlyRuns f;
  RunOptions options = f.options("");
  options.checkpoint.every = 1;
  f.run_straight_and_in_parts(options);
}
