// SPDX-License-Identifier: Apache-2.0
//
// What tests of scores and of responses do alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "infer/ScoreJob.hpp"
#include "support/TestRanks.hpp"

namespace taper::test {

using Sequences = std::vector<std::vector<std::int32_t>>;

// Of tensor parallelism, with so many ranks.
inline std::vector<int> degrees(int ranks) {
  std::vector<int> list;
  for (int t = 1; t <= ranks; ++t)
    if (ranks % t == 0) list.push_back(t);
  return list;
}

inline std::string model_directory(const std::string& name) {
  return TAPER_GOLDEN_DIR "/models/" + name;
}

// Sequences of uneven lengths.
inline Sequences some_sequences(int count, int vocab) {
  Sequences list;
  for (int i = 0; i < count; ++i) {
    list.emplace_back();
    for (int k = 0; k < 1 + (i * 23) % 71; ++k)
      list.back().push_back((7 * i + 13 * k + k * k) % vocab);
  }
  return list;
}

inline std::vector<std::vector<float>> score(TestRanks& world, const std::string& model,
                                             const Sequences& sequences, ScoreOptions options) {
  ModelFiles files(model_directory(model));
  return ScoreJob(options, files, sequences, world.ranks).run();
}

}  // namespace taper::test
