// SPDX-License-Identifier: Apache-2.0
#include "train/Critic.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/Error.hpp"
#include "io/Json.hpp"
#include "results/MetricTable.hpp"
#include "train/TrainRuns.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

// PPO with the KL in the reward, on responses that are better the shorter they are.
RunOptions ppo_run(const std::string& model, const std::string& output) {
  RunOptions options = small_run(model, output);
  options.experience.advantage.estimator = AdvantageEstimator::kGae;
  options.experience.advantage.lambda = 0.95;
  options.experience.kl.coef = 0.01;
  options.experience.kl.place = KlPlace::kReward;
  options.experience.kl.estimator = KlEstimator::kK1;
  RewardOptions& shorter = options.rewards.emplace_back();
  shorter.name = "shorter";
  shorter.kind = RewardKind::kLength;
  shorter.length = {0, 0.05, -100.0};
  options.critic.schedule.peak = 1e-3;
  return options;
}

std::string critic_weights(const TrainRuns& f, const std::string& output, int n) {
  return slurp(f.path(output) + "/checkpoints/iter_00000" + std::to_string(n) +
               "/critic/model.safetensors");
}

// Whose times differ from run to run.
bool is_measured(const std::string& name) {
  return name.starts_with("timing_s/") || name.starts_with("perf/");
}

}  // namespace

TEST_CASE("a resumed run of policy and critic has the bits of a straight one") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = ppo_run(f.path("model"), "");
  options.training.iterations = 3;
  options.critic.warmup = 1;
  options.critic.epochs = 2;
  options.critic.schedule.kind = ScheduleOptions::Kind::kCosine;
  options.critic.schedule.total_steps = 12;
  // Two ranks: the critic's shards overlap, the policy's do not. Three: the other way round.
  options.training.tp = world_size() == 3 ? 3 : 1;
  options.critic.tp = world_size() == 3 ? 1 : world_size();
  f.run_straight_and_in_parts(options);
  if (f.ranks.rank() != 0) return;
  for (int n = 1; n <= 3; ++n) {
    const bool same = critic_weights(f, "straight", n) == critic_weights(f, "parts", n);
    CHECK(same);
    auto straight = f.metrics("straight", n);
    const auto parts = f.metrics("parts", n);
    std::erase_if(straight, [](const auto& entry) { return is_measured(entry.first); });
    CHECK(straight.contains("critic/vf_loss"));
    for (const auto& [name, value] : straight) {
      INFO(name);
      CHECK(meaning_of("/metrics/" + name) != nullptr);
      REQUIRE(parts.contains(name));
      CHECK(parts.at(name) == value);
    }
  }
  const bool learned = critic_weights(f, "straight", 1) != critic_weights(f, "straight", 3);
  CHECK(learned);
  CHECK(f.metrics("straight", 3).at("critic/lr") < f.metrics("straight", 1).at("critic/lr"));
}

TEST_CASE("values of the rollout do not depend on the layout of policy and critic") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  std::map<std::string, double> first;
  for (const int policy_tp : {1, world_size()})
    for (const int critic_tp : {0, 1, world_size()}) {
      RunOptions options = ppo_run(f.path("model"), f.path("run"));
      options.training.tp = policy_tp;
      options.critic.tp = critic_tp;
      options.training.iterations = 1;
      options.checkpoint.every = 0;
      run(f.ranks, options);
      if (f.ranks.rank() == 0) {
        const auto now = f.metrics("run", 1);
        if (first.empty()) first = now;
        for (const char* name : {"critic/values/mean", "critic/values/max", "critic/returns/min",
                                 "critic/advantages/max", "critic/vf_explained_var"})
          CHECK(now.at(name) == first.at(name));
        CHECK(now.at("training/rollout_log_probs_diff_max") == 0.0);
      }
      barrier(f.ranks.world());
    }
}

TEST_CASE("in warm-up the critic learns alone") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = ppo_run(f.path("model"), f.path("run"));
  options.training.iterations = 3;
  options.critic.warmup = 2;
  run(f.ranks, options);
  if (f.ranks.rank() != 0) return;
  const std::string before = slurp(f.path("model") + "/model.safetensors");
  const auto same = [&](int n) { return f.weights("run", n) == before; };
  CHECK(same(1));
  CHECK(same(2));
  CHECK(!same(3));
  const auto critic_moved = [&](int n) {
    return critic_weights(f, "run", n) != critic_weights(f, "run", n - 1);
  };
  CHECK(critic_moved(2));
  CHECK(critic_moved(3));
  for (int n = 1; n <= 3; ++n) {
    const auto values = f.metrics("run", n);
    CHECK(values.contains("actor/grad_norm") == (n == 3));
    CHECK(values.at("critic/grad_norm") > 0.0);
  }
}

TEST_CASE("a critic of a run is a model to begin with") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = ppo_run(f.path("model"), f.path("first"));
  options.training.iterations = 1;
  run(f.ranks, options);
  barrier(f.ranks.world());
  RunOptions other = ppo_run(f.path("model"), f.path("other"));
  other.training.iterations = 1;
  other.critic.directory = f.path("first") + "/checkpoints/iter_000001/critic";
  other.critic.schedule.peak = 0.0;
  run(f.ranks, other);
  if (f.ranks.rank() != 0) return;
  CHECK(f.metrics("other", 1).at("critic/values/mean") !=
        f.metrics("first", 1).at("critic/values/mean"));
  const bool kept = critic_weights(f, "other", 1) == critic_weights(f, "first", 1);
  CHECK(kept);  // with a learning rate of 0
}

TEST_CASE("the memory plan has all models, and what is used in turn counts once") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = ppo_run(f.path("model"), f.path("run"));
  const TrainJob with(options, "test", f.ranks, StopRequest());
  options.experience.advantage = {};
  const TrainJob without(options, "test", f.ranks, StopRequest());
  const std::string table = with.memory_plan().table();
  for (const char* item :
       {"policy weights (packed)", "reference weights (packed)", "critic weights (packed)",
        "critic optimizer moments", "critic activations (layers)"})
    CHECK_THAT(table, ContainsSubstring(item));
  const auto always = [](const TrainJob& job) {
    return job.memory_plan().bytes(MemoryPhase::kAlways);
  };
  // Passes and gradients of the critic share the memory of generation and training.
  MemoryPlan plan = with.memory_plan();
  CHECK(plan.bytes(plan.phase("critic")) > 0);
  CHECK(with.memory_plan().total() - without.memory_plan().total() ==
        always(with) - always(without));
}

TEST_CASE("checkpoints without a critic and critics that do not fit are refused") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = small_run(f.path("model"), f.path("run"));
  options.training.iterations = 1;
  run(f.ranks, options);
  barrier(f.ranks.world());
  const RunOptions ppo = ppo_run(f.path("model"), f.path("run"));
  for (const std::string from : {"auto", "run/checkpoints/iter_000001"})
    CHECK_THROWS_MATCHES(
        run(f.ranks, ppo, from == "auto" ? from : f.path(from)), Error,
        MessageMatches(ContainsSubstring("has no critic") && ContainsSubstring("Model/Directory")));
  RunOptions wrong = ppo_run(f.path("model"), f.path("other"));
  wrong.critic.directory = TAPER_GOLDEN_DIR "/models/llama_b";
  wrong.rollout.max_new_tokens = 400;
  CHECK_THROWS_MATCHES(run(f.ranks, wrong), Error,
                       MessageMatches(ContainsSubstring("the context of Critic/Model Directory")));
  wrong.critic.directory = f.path("nowhere");
  CHECK_THROWS_MATCHES(run(f.ranks, wrong), Error,
                       MessageMatches(ContainsSubstring("Critic/Model Directory")));
}

TEST_CASE("a critic whose tokenizer was saved anew reads the policy's tokens") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  if (f.ranks.rank() == 0) {
    fs::copy(f.path("model"), f.path("critic"));
    const std::string file = f.path("critic") + "/tokenizer.json";
    spill(file, read_json_file(file).dump(1));
  }
  barrier(f.ranks.world());
  RunOptions options = ppo_run(f.path("model"), f.path("run"));
  options.critic.directory = f.path("critic");
  CHECK_NOTHROW(TrainJob(options, "test", f.ranks, StopRequest()));
}

TEST_CASE("responses get better, and the critic foresees it") {
  TrainRuns f;
  RunOptions options = ppo_run(TAPER_DATA_DIR "/model", f.path("run"));
  options.training.iterations = 8;
  options.checkpoint.every = 0;
  options.rollout.max_new_tokens = 32;
  options.rollout.prompts = 8;
  options.schedule.peak = 2e-4;
  options.loss.entropy_coef = 0.0;
  options.critic.schedule.peak = 2e-4;
  run(f.ranks, options);
  if (f.ranks.rank() != 0) return;
  const auto of = [&](const char* name, int n) { return f.metrics("run", n).at(name); };
  for (int n = 1; n <= 8; ++n)
    UNSCOPED_INFO(of("critic/score/mean", n)
                  << ' ' << of("critic/vf_loss", n) << ' ' << of("critic/vf_explained_var", n));
  CHECK(of("critic/score/mean", 7) + of("critic/score/mean", 8) >
        of("critic/score/mean", 1) + of("critic/score/mean", 2) + 0.2);
  CHECK(of("critic/vf_loss", 8) < of("critic/vf_loss", 1));
}
