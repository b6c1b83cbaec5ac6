// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <vector>

#include "checkpoint/Pieces.hpp"
#include "support/Scratch.hpp"

namespace taper::test {

// Writes a model of these layers of another one, of which those from the `first` on add nothing to
// the stream: behind any of them, an exit reads what the model's own head reads. On one rank.
inline void write_idle_layers(const ModelFiles& source, const std::vector<int>& layers, int first,
                              const std::filesystem::path& directory) {
  ModelConfig config = source.config;
  config.layers = static_cast<int>(layers.size());
  const ParamTable table(config);
  std::filesystem::create_directories(directory);
  spill(directory / "config.json", model_config_json(config, "float32"));
  const HuggingFaceReader reader = source.open_weights();
  HuggingFaceWriter writer(directory / "model.safetensors", table, TensorType::kF32);
  for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t) {
    const ParamTensor& tensor = table.tensors()[static_cast<std::size_t>(t)];
    const bool adds = tensor.role == ParamRole::kOutput || tensor.role == ParamRole::kDown;
    const int from = source.table.index_of(
        tensor.role, tensor.layer < 0 ? -1 : layers[static_cast<std::size_t>(tensor.layer)]);
    for (int unit = 0; unit < tensor.units; ++unit) {
      auto values = read_piece(source, reader, source.table.first_piece(from) + unit);
      if (adds && tensor.layer >= first) std::fill(values.begin(), values.end(), 0.0f);
      writer.write_piece(table.first_piece(t) + unit, values);
    }
  }
  writer.commit();
}

}  // namespace taper::test
