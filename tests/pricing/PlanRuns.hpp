// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "planner/LatencyProfile.hpp"
#include "train/RunOptions.hpp"

namespace taper::test {

// PPO with a reward model, all of the shape of the embedded model.
inline RunOptions ppo_run() {
  RunOptions run;
  run.model.directory = TAPER_DATA_DIR "/model";
  run.experience.advantage.estimator = AdvantageEstimator::kGae;
  run.experience.kl.coef = 0.05;
  run.rollout.prompts = 4;
  run.rollout.samples = 4;
  run.rollout.max_new_tokens = 24;
  RewardOptions& reward = run.rewards.emplace_back();
  reward.name = "preferred";
  reward.kind = RewardKind::kModel;
  reward.model.directory = TAPER_DATA_DIR "/model";
  return run;
}

// A profile of the embedded model on a made-up machine: a row costs a microsecond forward and three
// to learn from, its log-prob a tenth of that, at any degree; a step a millisecond, half of which
// replicas share out; a step of a generation 100 us and 10 us per row.
inline LatencyProfile profile_by_rows(const std::vector<int>& degrees) {
  LatencyProfile p;
  p.identity.model = {{"layers", "4"},   {"hidden", "256"},  {"heads", "4"},
                      {"kv_heads", "4"}, {"head_dim", "64"}, {"intermediate", "768"}};
  p.ranks = p.ranks_per_node = degrees.back();
  p.kv_bytes_per_position = 8192;
  p.moves = {{PairClass::kSameNode, 1000, 1000}};
  p.rendezvous = {{2, 1000}};
  for (const int tp : degrees) {
    for (const int batch : {1, 4, 16})
      for (const int context : {16, 512})
        p.steps.push_back({tp, PairClass::kSameNode, batch, batch, std::int64_t{batch} * context,
                           100'000 + 10'000 * batch, 0, 3});
    for (const PassKind kind : {PassKind::kForward, PassKind::kLearn}) {
      const std::int64_t row = kind == PassKind::kLearn ? 3000 : 1000;
      for (const int rows : {10, 100, 1000})
        for (const int length : {10, 50})
          for (const int targets : {0, rows})
            p.passes.push_back({kind, tp, PairClass::kSameNode, 1, rows, targets, length,
                                row * rows + row / 10 * targets, 0, 3});
    }
    for (const int replicas : {1, 2, 4})
      p.passes.push_back({PassKind::kUpdate, tp, PairClass::kSameNode, replicas, 0, 0, 0,
                          500'000 + 500'000 / replicas, 0, 3});
  }
  return p;
}

}  // namespace taper::test
