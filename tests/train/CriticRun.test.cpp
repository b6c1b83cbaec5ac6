// SPDX-License-Identifier: Apache-2.0
//
// Whether PPO with a critic teaches the embedded model its in-tree tasks, as data/ppo.yaml does.
#include <catch2/catch_test_macros.hpp>

#include "train/Preset.hpp"
#include "train/RunOptions_params.hpp"
#include "train/TrainRuns.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("answers to in-tree tasks get better, and the critic foresees which will be right") {
  TrainRuns f;
  auto file = param::ParamFile::read(TAPER_DATA_DIR "/ppo.yaml");
  apply_preset(file);
  RunOptions options;
  param::Schema schema;
  describe(schema, options);
  schema.read(file);
  options.model.directory = TAPER_DATA_DIR "/model";
  options.training.iterations = 50;
  options.evaluation.every = 0;
  options.output = f.path("run");
  run(f.ranks, options);
  if (f.ranks.rank() != 0) return;
  const auto mean = [&](const char* name, int first, int last) {
    double sum = 0.0;
    for (int n = first; n <= last; ++n) sum += f.metrics("run", n).at(name);
    return sum / (last - first + 1);
  };
  CHECK(mean("critic/score/mean", 41, 50) > mean("critic/score/mean", 1, 5) + 0.2);
  CHECK(mean("critic/vf_explained_var", 41, 50) > 0.05);
  CHECK(mean("critic/vf_loss", 41, 50) < mean("critic/vf_loss", 1, 5));
}
