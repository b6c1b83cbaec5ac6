// SPDX-License-Identifier: Apache-2.0
#include "model/HuggingFace.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>

#include "model/GoldenModel.hpp"
#include "support/Bits.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

std::vector<float> piece(const HuggingFaceReader& reader, const ParamTable& table, int id) {
  std::vector<float> values(table.tensors()[table.tensor_of_piece(id)].unit_size(), -1.0f);
  reader.read_piece(id, values);
  return values;
}

// Writes all pieces of the model, the last one first.
void copy_model(const HuggingFaceReader& reader, const ParamTable& table, const fs::path& file,
                TensorType type) {
  HuggingFaceWriter writer(file, table, type);
  for (int id = table.pieces() - 1; id >= 0; --id) writer.write_piece(id, piece(reader, table, id));
  writer.commit();
}

std::vector<float> all_of(const SafetensorsDir& files, const HuggingFaceTensor& tensor) {
  const std::int64_t columns = tensor.shape.size() > 1 ? tensor.shape[1] : 1;
  std::vector<float> values(static_cast<std::size_t>(tensor.shape[0] * columns));
  files.read_f32_block(tensor.name, 0, tensor.shape[0], 0, columns, values);
  return values;
}

// What is said of a golden model whose config.json has other figures.
template <class Change>
std::string error_of(const std::string& name, const Change& change) {
  ModelConfig config = read_model_config(golden_dir(name));
  change(config);
  const ParamTable table(config);
  return message_of([&] { HuggingFaceReader(golden_dir(name), table); });
}

}  // namespace

TEST_CASE("what is read piece by piece and written in any order is the model that it was") {
  const Scratch scratch;
  for (const auto& name : kGoldenModels) {
    INFO(name);
    const ParamTable table(read_model_config(golden_dir(name)));
    const HuggingFaceReader reader(golden_dir(name), table);
    copy_model(reader, table, scratch / "model.safetensors", TensorType::kF32);
    const auto before = SafetensorsDir::open(golden_dir(name)),
               after = SafetensorsDir::open(scratch.path());
    const auto tensors = hugging_face_tensors(table);
    CHECK(after.names().size() == tensors.size());
    for (const auto& tensor : tensors) {
      INFO(tensor.name);
      CHECK(after.tensor(tensor.name).shape == tensor.shape);
      CHECK(same_bits(all_of(after, tensor), all_of(before, tensor)));
    }
  }
}

TEST_CASE("a BF16 model is written as BF16 without a change") {
  const Scratch scratch;
  const ParamTable table(read_model_config(golden_dir("llama_b")));
  const auto before = SafetensorsDir::open(golden_dir("llama_b"));
  const std::string query = "model.layers.0.self_attn.q_proj.weight";
  REQUIRE(before.tensor(query).type == TensorType::kBf16);
  copy_model(HuggingFaceReader(golden_dir("llama_b"), table), table, scratch / "model.safetensors",
             TensorType::kBf16);
  const auto after = SafetensorsDir::open(scratch.path());
  CHECK(after.tensor(query).type == TensorType::kBf16);
  for (const auto& tensor : hugging_face_tensors(table))
    CHECK(same_bits(all_of(after, tensor), all_of(before, tensor)));
}

TEST_CASE("rows of a piece that no tensor fills are zero, the others are not") {
  const ParamTable table(read_model_config(golden_dir("llama_b")));
  const HuggingFaceReader reader(golden_dir("llama_b"), table);
  int padding = 0;
  for (int id = 0; id < table.pieces(); ++id) {
    const int tensor = table.tensor_of_piece(id);
    const ParamTensor& info = table.tensors()[tensor];
    const auto values = piece(reader, table, id);
    for (int row = 0; row < info.unit_rows; ++row) {
      const auto begin = values.begin() + std::ptrdiff_t(row) * info.columns;
      const bool zero = std::all_of(begin, begin + info.columns, [](float x) { return x == 0; });
      CHECK(zero == table.is_padding(tensor, id - table.first_piece(tensor), row));
      padding += zero;
    }
  }
  CHECK(padding > 0);
}

TEST_CASE("the list of tensors has all parameters of the model") {
  for (const auto& name : kGoldenModels) {
    const ParamTable table(read_model_config(golden_dir(name)));
    std::int64_t elements = 0;
    for (const auto& tensor : hugging_face_tensors(table))
      elements += std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1},
                                  std::multiplies<>());
    CHECK(elements == table.config().parameters());
  }
}

TEST_CASE("weights of another model are refused by name and shape") {
  CHECK_THAT(error_of("llama_a", [](ModelConfig& c) { c.qkv_bias = true; }),
             ContainsSubstring("llama_a has no tensor 'model.layers.0.self_attn.q_proj.bias'"));
  CHECK_THAT(error_of("llama_a", [](ModelConfig& c) { c.intermediate = 160; }),
             ContainsSubstring("'model.layers.0.mlp.gate_proj.weight' has shape [96, 64] "
                               "(config.json means [160, 64])"));
  CHECK_THAT(error_of("llama_b", [](ModelConfig& c) { c.layers = 3; }),
             ContainsSubstring("no tensor 'model.layers.2.input_layernorm.weight'"));
}

TEST_CASE("a file of weights that is cut off is refused") {
  const Scratch scratch;
  const ParamTable table(read_model_config(golden_dir("qwen2_a")));
  fs::copy_file(golden_dir("qwen2_a") / "model.safetensors", scratch / "model.safetensors");
  CHECK(message_of([&] { HuggingFaceReader(scratch.path(), table); }).empty());
  fs::resize_file(scratch / "model.safetensors", fs::file_size(scratch / "model.safetensors") - 1);
  CHECK_THAT(message_of([&] { HuggingFaceReader(scratch.path(), table); }),
             ContainsSubstring("model.safetensors"));
}
