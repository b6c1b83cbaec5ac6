// SPDX-License-Identifier: Apache-2.0
#include "Commands.hpp"
#include "Tuning.hpp"
#include "tune/RewardModelJob.hpp"

namespace taper {

int run_reward_model(int argc, char** argv) {
  return run_tuning<RewardModelJob, RewardModelOptions>(
      argc, argv,
      {"taper reward-model",
       "Trains a reward model on files of preference pairs, configured by a run file."});
}

}  // namespace taper
