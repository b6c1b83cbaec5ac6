// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "device/Arena.hpp"
#include "device/Runtime.hpp"
#include "kernels/Staging.hpp"
#include "model/HuggingFace.hpp"
#include "model/RopeTable.hpp"
#include "model/TrainPass.hpp"

namespace taper::test {

// The model of a Hugging Face directory, loaded as one shard of `group`, with everything for a
// training pass. Sequences have at most `positions` tokens. With a `score_seed` it is a reward
// model whose head is drawn.
struct LoadedModel {
  explicit LoadedModel(const std::filesystem::path& directory, const Group& group,
                       WeightType type = WeightType::kF32, TrainPassOptions options = {},
                       int positions = 512, std::optional<std::uint64_t> score_seed = {},
                       const LeafBlocks& leaf_blocks = {})
      : config(configured(directory, score_seed.has_value())),
        table(config, leaf_blocks),
        parallel(table, group, options.precision.arithmetic),
        local(table, parallel.shard()),
        rope(staged(make_rope_table(config, positions))) {
    set_float_mode();
    set_precision(exec, options.precision);
    MemoryPlan plan;
    PackedModel::add_memory(plan, "test", local, type, WithBackward::kYes);
    TrainPass::add_memory(plan, table, parallel, options);
    plan.add("gradients", MemoryPhase::kAlways, local.size() * bytes_of(options.gradients));
    arena = std::make_unique<Arena>(plan);
    packed = std::make_unique<PackedModel>("test", local, parallel.shard(), type,
                                           WithBackward::kYes, *arena);
    values.resize(local.size());
    const HuggingFaceReader reader(directory, table, score_seed);
    for (const auto& piece : local.pieces())
      reader.read_piece(piece.id,
                        {values.data() + piece.offset, static_cast<std::size_t>(piece.size)});
    pack();
    view = std::make_unique<ModelView>(*packed, parallel.shard());
    const ConstFloatMatrix rope_table(rope.data(), positions, config.head_dim);
    pass = std::make_unique<TrainPass>(table, parallel, options, *arena, rope_table);
    gradients = std::make_unique<Gradients>(
        local, options.gradients,
        arena->take("gradients", MemoryPhase::kAlways, local.size() * bytes_of(options.gradients)));
  }

  static ModelConfig configured(const std::filesystem::path& directory, bool draws_score) {
    ModelConfig config = read_model_config(directory);
    if (draws_score) config.output = OutputHead::kScalar;
    return config;
  }

  void pack() {
    for (std::size_t t = 0; t < table.tensors().size(); ++t)
      packed->pack(exec, static_cast<int>(t), values.data() + local.offset(static_cast<int>(t)));
  }

  // Rows and targets of all next-token predictions.
  static void predictions(const PackedSequences& s, std::vector<int>& rows,
                          std::vector<std::int32_t>& targets) {
    int begin = 0;
    for (const int length : s.lengths) {
      for (int i = 0; i + 1 < length; ++i) {
        rows.push_back(begin + i);
        targets.push_back(s.ids[begin + i + 1]);
      }
      begin += length;
    }
  }

  // Adds the gradient of minus the mean log-prob and returns that loss.
  double train(const PackedSequences& s) {
    std::vector<int> rows;
    std::vector<std::int32_t> targets;
    predictions(s, rows, targets);
    const TokenSlope slope{-1.0f / static_cast<float>(rows.size()), 0.0f};
    double loss = 0;
    pass->forward(exec, *view, parallel, s);
    pass->backward(
        exec, *view, parallel, rows, targets, {config.vocab, 1.0f},
        [&](std::size_t, float log_prob, float) {
          loss -= log_prob;
          return slope;
        },
        *gradients);
    return loss / static_cast<double>(rows.size());
  }

  // All of it, of plain floats.
  FloatVector gradient_values() const {
    return FloatVector(gradients->all().f32(), static_cast<std::size_t>(local.size()));
  }

  // The gradient in the tensors and shapes of Hugging Face. One shard that is the whole model.
  void write_gradients(const std::filesystem::path& file) const {
    HuggingFaceWriter writer(file, table, TensorType::kF32);
    for (const auto& piece : local.pieces())
      writer.write_piece(piece.id, {gradient_values().data() + piece.offset,
                                    static_cast<std::size_t>(piece.size)});
    writer.commit();
  }

  Exec exec;
  ModelConfig config;
  ParamTable table;
  ModelParallel parallel;
  LocalParams local;
  Staged<float> rope, values;  // where kernels can reach them
  std::unique_ptr<Arena> arena;
  std::unique_ptr<PackedModel> packed;
  std::unique_ptr<ModelView> view;
  std::unique_ptr<TrainPass> pass;
  std::unique_ptr<Gradients> gradients;
};

}  // namespace taper::test
