// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "io/Safetensors.hpp"
#include "model/LoadedModel.hpp"

namespace taper::test {

inline const std::vector<std::string> kGoldenModels{"llama_a", "llama_b", "llama_c", "qwen2_a",
                                                    "qwen2_b", "qwen3_a", "qwen3_b"};

inline std::filesystem::path golden_dir(const std::string& name) {
  return std::filesystem::path(TAPER_GOLDEN_DIR) / "models" / name;
}

// A model of tests/golden with the results that transformers gave.
struct GoldenModel : LoadedModel {
  explicit GoldenModel(const std::string& name, const Group& group,
                       WeightType type = WeightType::kF32, TrainPassOptions options = {},
                       const LeafBlocks& leaf_blocks = {})
      : LoadedModel(golden_dir(name), group, type, options, 512, {}, leaf_blocks),
        golden(SafetensorsFile::open(golden_dir(name) / "golden.safetensors")) {}

  template <class T>
  std::vector<T> read(const std::string& name) const {
    const auto& tensor = golden.tensor(name);
    std::vector<T> out(tensor.bytes.size() / sizeof(T));
    std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
    return out;
  }

  // The three golden sequences, packed.
  PackedSequences sequences() const {
    PackedSequences s;
    for (const auto id : read<std::int64_t>("input_ids"))
      s.ids.push_back(static_cast<std::int32_t>(id));
    const auto offsets = read<std::int64_t>("offsets");
    for (std::size_t i = 1; i < offsets.size(); ++i)
      s.lengths.push_back(static_cast<int>(offsets[i] - offsets[i - 1]));
    return s;
  }

  SafetensorsFile golden;
};

}  // namespace taper::test
