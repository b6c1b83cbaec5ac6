// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "support/RewardDirectory.hpp"
#include "train/TrainRuns.hpp"

namespace taper::test {

// PPO with five models: policy and critic learn, a reference and two reward models score.
struct FiveModels : TrainRuns {
  FiveModels() {
    make_model(ranks, path("model"));
    if (ranks.rank() == 0) write_reward_model(path("model"), {}, path("reward"));
    barrier(ranks.world());
  }

  RunOptions options(const std::string& output) const {
    RunOptions o = small_run(path("model"), path(output));
    o.experience.advantage.estimator = AdvantageEstimator::kGae;
    o.experience.kl.coef = 0.05;
    o.critic.schedule.peak = 1e-3;
    o.checkpoint.every = 0;
    o.evaluation.every = 1;
    o.evaluation.prompts = 3;
    for (const char* name : {"preferred", "second"}) {
      RewardOptions& reward = o.rewards.emplace_back();
      reward.name = name;
      reward.kind = RewardKind::kModel;
      reward.model.directory = path("reward");
    }
    return o;
  }

  // Rollouts but for who made them; a reward that is missing is a number that equals itself.
  std::vector<RolloutRecord> made(const std::string& output, int n) const {
    std::vector<RolloutRecord> records = rollouts(output, n);
    for (RolloutRecord& r : records) {
      r.layout.clear();
      for (float& reward : r.rewards)
        if (std::isnan(reward)) reward = -1e30f;
    }
    return records;
  }
  // Everything that the last iteration of a run has made: critic and policy, samples with rewards,
  // reference log-probs and values; and the losses.
  void check_equal(const std::string& expected, const std::string& output, int n) const {
    barrier(ranks.world());
    const bool same_policy = weights(expected, n) == weights(output, n);
    CHECK(same_policy);
    const auto critic = [&](const std::string& run) {
      return slurp(path(run) + "/checkpoints/iter_00000" + std::to_string(n) +
                   "/critic/model.safetensors");
    };
    const bool same_critic = critic(expected) == critic(output);
    CHECK(same_critic);
    for (int i = 1; i <= n; ++i) {
      const bool same_rollouts = made(expected, i) == made(output, i);
      CHECK(same_rollouts);
    }
    if (ranks.rank() != 0) return;
    for (int i = 1; i <= n; ++i)
      for (const auto& [name, value] : metrics(expected, i))
        if (name.starts_with("actor/") || name.starts_with("critic/") ||
            name.starts_with("reward/") || name.starts_with("val/")) {
          if (name.find("latency") != std::string::npos) continue;
          INFO(output << ", iteration " << i << ": " << name);
          CHECK(metrics(output, i).at(name) == value);
        }
  }
};

}  // namespace taper::test
