// SPDX-License-Identifier: Apache-2.0
//
// Weights from and to Hugging Face directories. A rank reads only the slices of its own pieces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/Safetensors.hpp"
#include "io/SafetensorsWriter.hpp"
#include "model/ModelShard.hpp"

namespace taper {

// Reads pieces (units of tensors) of one model.
class HuggingFaceReader {
 public:
  // Opens the weights of the directory (the headers of all files; their lengths must agree with
  // them) and checks every tensor's presence, shape and type against the table. With a seed, the
  // weights of a scalar head are drawn from it: those of the directory are of a language model.
  // Throws Error naming the file and the tensor.
  HuggingFaceReader(const std::filesystem::path& directory, const ParamTable& table,
                    std::optional<std::uint64_t> score_seed = {});

  // The stored rows of piece `id` as f32, padding included: out (unit_rows, columns).
  void read_piece(int id, std::span<float> out) const;

 private:
  void check(const std::string& name, std::vector<std::int64_t> shape) const;

  std::string path_;
  const ParamTable* table_;
  SafetensorsDir files_;
  std::optional<std::uint64_t> score_seed_;
};

// Which Hugging Face tensors the pieces of a tensor belong to, with their full shapes.
struct HuggingFaceTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};
std::vector<HuggingFaceTensor> hugging_face_tensors(const ParamTable& table);

// Writes model.safetensors (in `type`: F32 or BF16) from pieces handed over in any order; all on
// one rank.
class HuggingFaceWriter {
 public:
  HuggingFaceWriter(const std::filesystem::path& file, const ParamTable& table, TensorType type);
  void write_piece(int id, std::span<const float> values);
  void commit() { writer_.commit(); }

 private:
  const ParamTable* table_;
  SafetensorsWriter writer_;
};

}  // namespace taper
