// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "param/ParamFile.hpp"
#include "param/Schema.hpp"
#include "train/RunOptions_params.hpp"

namespace taper {

// The rewards of a run file, for make_spawner(): before there are ranks, and before the options of
// the command are read. Throws Error with all problems of the file.
inline std::vector<RewardOptions> read_rewards(param::ParamFile file) {
  RunOptions options;
  param::Schema schema;
  describe(schema, options);
  read_run(schema, std::move(file));
  return {options.rewards.begin(), options.rewards.end()};
}

}  // namespace taper
