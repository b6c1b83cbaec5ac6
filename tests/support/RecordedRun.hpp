// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "results/RolloutFile.hpp"
#include "results/RunDirectory.hpp"

namespace taper::test {

// The rollout file of an iteration of a run, whose folder of rollouts must be there: responses of
// these lengths, four to each prompt of 20 tokens. stream: as RolloutFileOptions::stream.
inline void write_recorded(const std::filesystem::path& run, int iteration,
                           const std::vector<int>& lengths,
                           const std::vector<std::int64_t>& stream = {}) {
  std::vector<RolloutRecord> records;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    RolloutRecord& r = records.emplace_back();
    r.id.prompt = static_cast<std::int64_t>(i / 4);
    r.id.sample = static_cast<std::int32_t>(i % 4);
    r.prompt_length = 20;
    r.tokens.assign(20 + lengths[i], 1);
    r.log_probs.assign(lengths[i], 0.0f);
    r.rewards = {0.0f};
  }
  RolloutFileOptions file;
  file.iteration = iteration;
  file.reward_names = {"score"};
  file.stream = stream;
  write_rollouts(RunDirectory(run).rollout(iteration), MPI_COMM_SELF, records, file);
}

}  // namespace taper::test
