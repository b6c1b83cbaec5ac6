// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/ModelParallel.hpp"
#include "model/PackedModel.hpp"
#include "model/RandomWeights.hpp"

namespace taper::test {

// A model without layers, on this rank alone: what an early exit of a model has. Its weights are
// random.
struct HeadModel {
  HeadModel(const ModelConfig& of, int vocab, std::uint64_t seed, const Group& self)
      : config(without_layers(of, vocab)),
        table(config),
        parallel(table, self, Arithmetic::kF32),
        local(table, parallel.shard()),
        values(static_cast<std::size_t>(local.size())),
        arena(plan(local)),
        packed("head", local, parallel.shard(), WeightType::kF32, WithBackward::kYes, arena),
        view(packed, parallel.shard()) {
    for (const LocalParams::Piece& p : local.pieces())
      draw_piece(table, p.id, seed,
                 std::span(values).subspan(static_cast<std::size_t>(p.offset),
                                           static_cast<std::size_t>(p.size)));
    pack();
  }

  void pack() {
    for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t)
      packed.pack(exec, t, values.data() + local.offset(t));
  }

  // Of row `row` of the head, (h).
  const float* row(int row) const {
    return values.data() + local.offset(table.index_of(ParamRole::kEmbedding)) +
           std::int64_t{row} * config.hidden;
  }

  static ModelConfig without_layers(ModelConfig config, int vocab) {
    config.layers = 0;
    config.tied = true;
    config.vocab = vocab;
    return config;
  }
  static MemoryPlan plan(const LocalParams& local) {
    MemoryPlan plan;
    PackedModel::add_memory(plan, "head", local, WeightType::kF32, WithBackward::kYes);
    return plan;
  }

  Exec exec;
  ModelConfig config;
  ParamTable table;
  ModelParallel parallel;
  LocalParams local;
  std::vector<float> values;  // f32, in the order of the table
  Arena arena;
  PackedModel packed;
  ModelView view;
};

}  // namespace taper::test
