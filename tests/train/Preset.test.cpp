// SPDX-License-Identifier: Apache-2.0
#include "train/Preset.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "train/RunOptions_params.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

// A run file with a preset, and what becomes of it.
struct Read {
  explicit Read(const std::string& algorithm, const std::vector<std::string>& assignments = {}) {
    auto file = param::ParamFile::parse("Model: {Directory: m}\nAlgorithm: {" + algorithm + "}\n",
                                        "run.yaml");
    for (const auto& assignment : assignments) file.set(assignment);
    applied = apply_preset(file);
    describe(schema, options);
    problems = schema.read_and_list_problems(file);
  }

  RunOptions options;
  param::Schema schema;
  AppliedPreset applied;
  std::vector<std::string> problems;
};

}  // namespace

TEST_CASE("every preset is a run without problems, and lands in the configuration in use") {
  REQUIRE(presets().size() == 9);
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    const Read run("Preset: " + preset.name);
    CHECK(run.problems.empty());
    CHECK(run.options.preset == preset.name);
    CHECK(run.applied.set == preset.settings);
    CHECK(run.applied.of_file.empty());
    const std::string yaml = run.schema.current_yaml();
    CHECK_THAT(yaml, ContainsSubstring("Preset: " + preset.name));
    // Read again, as from run.h5, it is the same.
    RunOptions again;
    param::Schema schema;
    describe(schema, again);
    auto file = param::ParamFile::parse(yaml, "again.yaml");
    CHECK(apply_preset(file).set.empty());
    schema.read(file);
    CHECK(schema.current_yaml() == yaml);
  }
}

TEST_CASE("presets set what their names promise") {
  const Read dapo("Preset: dapo");
  CHECK(dapo.options.loss.clip_high == 0.28);
  CHECK(dapo.options.dynamic.on);
  CHECK(dapo.options.experience.kl.coef == 0.0);
  const Read gspo("Preset: gspo");
  CHECK(gspo.options.loss.kind == PolicyLossKind::kGspo);
  CHECK(gspo.options.loss.clip_low == 3e-4);
  CHECK(gspo.options.loss.aggregation == LossAggregation::kSeqMeanTokenMean);
  const Read reinforce("Preset: reinforce++");
  CHECK(reinforce.options.experience.advantage.estimator == AdvantageEstimator::kReinforcePlusPlus);
  CHECK(reinforce.options.experience.kl.in_reward());
  const Read ppo("Preset: ppo");
  CHECK(ppo.options.has_critic());
  CHECK(ppo.options.experience.kl.in_reward());
  CHECK(ppo.options.critic_in_use().directory == "m");
  CHECK(ppo.options.critic_in_use().clip == 0.5);
  CHECK_THAT(ppo.applied.summary(), ContainsSubstring("Critic/Value Clip 0.5"));
  const Read dr_grpo("Preset: dr-grpo");
  CHECK(dr_grpo.options.loss_in_use().length_norm == dr_grpo.options.rollout.max_new_tokens);
}

TEST_CASE("keys of the run file and assignments override a preset, and that is said") {
  const Read run("Preset: DAPO, Clip High: 0.25", {"Algorithm/Dynamic Sampling=false"});
  CHECK(run.problems.empty());
  CHECK(run.options.loss.clip_high == 0.25);
  CHECK(!run.options.dynamic.on);
  CHECK(run.options.loss.dual_clip == 10.0);
  const std::string summary = run.applied.summary();
  CHECK_THAT(summary, ContainsSubstring("Algorithm/Preset dapo sets"));
  CHECK_THAT(summary, ContainsSubstring("Algorithm/Dual Clip 10"));
  CHECK_THAT(summary, ContainsSubstring("its own Algorithm/Clip High 0.25"));
  CHECK_THAT(summary, ContainsSubstring("Algorithm/Dynamic Sampling false"));
}

TEST_CASE("an unknown preset is refused with those there are; none sets nothing") {
  const Read wrong("Preset: dappo");
  CHECK(wrong.applied.name.empty());
  CHECK(wrong.applied.summary().empty());
  REQUIRE(wrong.problems.size() == 1);
  for (const Preset& preset : presets())
    CHECK_THAT(wrong.problems.front(), ContainsSubstring(preset.name));
  CHECK_THAT(wrong.problems.front(), ContainsSubstring("did you mean dapo?"));
  CHECK(Read("Preset: none").problems.empty());
  CHECK(Read("Preset: none").options.preset.empty());
}

TEST_CASE("a setting of a preset that does not fit is reported with the preset") {
  const Read run("Preset: rloo, Advantage Normalization: group");
  REQUIRE(run.problems.size() == 1);
  CHECK_THAT(run.problems.front(), ContainsSubstring("Algorithm/Preset rloo"));
}
