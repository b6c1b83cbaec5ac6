// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>

#include "comm/Collectives.hpp"
#include "instance/TrainingModel.hpp"
#include "session/SharedArena.hpp"
#include "support/TestRanks.hpp"

namespace taper::test {

inline constexpr const char* kSmallModel = TAPER_GOLDEN_DIR "/models/llama_b";

// A model that is trained at a tensor-parallel degree; its masters and moments are zero at first.
struct SmallTraining {
  SmallTraining(const Ranks& ranks, ModelFiles& files, int tp, WeightType type = WeightType::kF32)
      : model(files, ranks, options(tp, type)) {
    MemoryPlan plan;
    model.add_memory(plan);
    arena = make_arena(ranks, plan);
    model.create(*arena, files.rope_table(files.config.max_positions));
  }

  // Calls use(piece, where its values begin in the arrays of the optimizer) for each piece that
  // this rank's optimizer owns.
  template <class Use>
  void each_piece(const Use& use) const {
    for (const auto& piece : model.optimizer().owned())
      use(piece, piece.offset - model.optimizer().begin());
  }

  static TrainingModelOptions options(int tp, WeightType type) {
    TrainingModelOptions options;
    options.type = type;
    options.train_tp = tp;
    options.pass.max_rows = 64;
    options.pass.max_sequences = 4;
    options.pass.logit_rows = 64;
    return options;
  }

  std::unique_ptr<Arena> arena;
  TrainingModel model;
};

// Of training: replicas of one rank each, and one replica of all ranks.
inline std::set<int> some_degrees() {
  return {1, world_size()};
}

}  // namespace taper::test
