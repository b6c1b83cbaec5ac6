// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "device/Arena.hpp"
#include "device/Runtime.hpp"
#include "io/Safetensors.hpp"
#include "model/HuggingFace.hpp"
#include "model/RopeTable.hpp"
#include "model/TrainPass.hpp"

namespace taper::test {

inline const std::vector<std::string> kGoldenModels{"llama_a", "llama_b", "llama_c", "qwen2_a",
                                                    "qwen2_b", "qwen3_a", "qwen3_b"};

inline std::filesystem::path golden_dir(const std::string& name) {
  return std::filesystem::path(TAPER_GOLDEN_DIR) / "models" / name;
}

// A model of tests/golden, loaded as one shard of `group`, with everything for a training pass.
struct GoldenModel {
  GoldenModel(const std::string& name, const Group& group, WeightType type = WeightType::kF32,
              TrainPassOptions options = {})
      : config(read_model_config(golden_dir(name))),
        table(config),
        parallel(table, group),
        layout(table, parallel.shard()),
        golden(SafetensorsFile::open(golden_dir(name) / "golden.safetensors")),
        rope(make_rope_table(config, 512)) {
    set_float_mode();
    MemoryPlan plan;
    PackedModel::plan(plan, "test", layout, type, WithBackward::kYes);
    TrainPass::plan(plan, table, parallel, options);
    plan.add("gradients", MemoryPhase::kAlways, layout.size() * 4);
    arena = std::make_unique<Arena>(plan);
    packed = std::make_unique<PackedModel>("test", layout, parallel.shard(), type,
                                           WithBackward::kYes, *arena);
    values.resize(layout.size());
    const HuggingFaceReader reader(golden_dir(name), table);
    for (const auto& piece : layout.pieces())
      reader.read_piece(piece.id,
                        {values.data() + piece.offset, static_cast<std::size_t>(piece.size)});
    pack();
    view = std::make_unique<ModelView>(*packed, parallel.shard());
    const ConstFloatMatrix rope_table(rope.data(), 512, config.head_dim);
    pass = std::make_unique<TrainPass>(table, parallel, options, *arena, rope_table);
    gradients = std::make_unique<Gradients>(
        layout, arena->take<float>("gradients", MemoryPhase::kAlways, layout.size()));
  }

  void pack() {
    for (std::size_t t = 0; t < table.tensors().size(); ++t)
      packed->pack(exec, static_cast<int>(t), values.data() + layout.offset(static_cast<int>(t)));
  }

  template <class T>
  std::vector<T> read(const std::string& name) const {
    const auto& tensor = golden.tensor(name);
    std::vector<T> out(tensor.bytes.size() / sizeof(T));
    std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
    return out;
  }

  // The three golden sequences, packed; rows and targets of all next-token predictions.
  PackedSequences sequences() const {
    PackedSequences s;
    for (const auto id : read<std::int64_t>("input_ids"))
      s.ids.push_back(static_cast<std::int32_t>(id));
    const auto offsets = read<std::int64_t>("offsets");
    for (std::size_t i = 1; i < offsets.size(); ++i)
      s.lengths.push_back(static_cast<int>(offsets[i] - offsets[i - 1]));
    return s;
  }
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

  HostExec exec;
  ModelConfig config;
  ParamTable table;
  ModelParallel parallel;
  LocalLayout layout;
  SafetensorsFile golden;
  std::vector<float> rope, values;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<PackedModel> packed;
  std::unique_ptr<ModelView> view;
  std::unique_ptr<TrainPass> pass;
  std::unique_ptr<Gradients> gradients;
};

}  // namespace taper::test
