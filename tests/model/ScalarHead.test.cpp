// SPDX-License-Identifier: Apache-2.0
#include "model/ScalarHead.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/Error.hpp"
#include "comm/Group.hpp"
#include "model/GoldenModel.hpp"
#include "model/RandomWeights.hpp"
#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

const std::vector<std::string> kModels{"llama_b", "qwen2_a", "qwen3_b"};

// A golden model with a scalar head of golden weights, and what transformers gives for it.
struct ScalarModel : LoadedModel {
  ScalarModel(const std::string& name, const Group& group, TrainPassOptions options = {})
      : LoadedModel(golden_dir(name), group, WeightType::kF32, options, 256, 1),
        base(SafetensorsFile::open(golden_dir(name) / "golden.safetensors")),
        golden(SafetensorsFile::open(golden_dir("../scalar/" + name + ".safetensors"))) {
    const auto score = read<float>(golden, "score");
    std::copy(score.begin(), score.end(),
              values.begin() + local.offset(table.index_of(ParamRole::kScore)));
    pack();
    for (const auto id : read<std::int64_t>(base, "input_ids"))
      sequences.ids.push_back(static_cast<std::int32_t>(id));
    const auto offsets = read<std::int64_t>(base, "offsets");
    for (std::size_t i = 1; i < offsets.size(); ++i)
      sequences.lengths.push_back(static_cast<int>(offsets[i] - offsets[i - 1]));
    rows.resize(sequences.ids.size());
    std::iota(rows.begin(), rows.end(), 0);
    const FloatVector gradient = gradient_values();
    std::fill_n(gradient.data(), gradient.size(), 0.0f);
  }

  template <class T>
  static std::vector<T> read(const SafetensorsFile& file, const std::string& name) {
    const auto& tensor = file.tensor(name);
    std::vector<T> out(tensor.bytes.size() / sizeof(T));
    std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
    return out;
  }

  std::vector<float> forward_values() {
    std::vector<float> value(rows.size());
    pass->forward(exec, *view, parallel, sequences);
    pass->values(exec, *view, rows, value);
    return value;
  }
  std::vector<float> gradient() {
    pass->forward(exec, *view, parallel, sequences);
    pass->backward_values(exec, *view, parallel, rows, read<float>(golden, "slopes"), *gradients);
    const FloatVector all = gradient_values();
    return {all.data(), all.data() + all.size()};
  }

  SafetensorsFile base, golden;
  PackedSequences sequences;
  std::vector<int> rows;
};

std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::temp_directory_path() /
         ("taper-scalar-" + name + std::to_string(::getpid()));
}

}  // namespace

TEST_CASE("values equal those of transformers within f32 noise") {
  const Group self = Group::self();
  for (const auto& name : kModels) {
    INFO(name);
    ScalarModel m(name, self);
    const auto value = m.forward_values(), expected = ScalarModel::read<float>(m.golden, "values");
    REQUIRE(value.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < value.size(); ++i)
      worst = std::max<double>(worst, std::abs(value[i] - expected[i]));
    CHECK(worst < 4e-5);
  }
}

TEST_CASE("values have the same bits for every tensor-parallel degree, in any chunks and packing") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  ScalarModel one("llama_b", self);
  const auto whole = one.forward_values();
  for (const int chunk : {1, 7, 512}) {
    TrainPassOptions options;
    options.logit_rows = chunk;
    ScalarModel many("llama_b", world, options);
    CHECK(same_bits(many.forward_values(), whole));
  }
  // The second sequence alone.
  const int begin = one.sequences.lengths[0], length = one.sequences.lengths[1];
  one.sequences = {{one.sequences.ids.begin() + begin, one.sequences.ids.begin() + begin + length},
                   {length}};
  one.rows.resize(length);
  const auto alone = one.forward_values();
  CHECK(same_bits(alone, {whole.begin() + begin, whole.begin() + begin + length}));
}

TEST_CASE("gradients of values equal those of transformers") {
  const Group self = Group::self();
  for (const auto& name : kModels)
    for (const auto checkpointing : {Checkpointing::kNo, Checkpointing::kYes}) {
      INFO(name);
      TrainPassOptions options;
      options.checkpointing = checkpointing;
      options.logit_rows = 32;
      ScalarModel m(name, self, options);
      m.gradient();
      const auto file = scratch("gradients.safetensors");
      m.write_gradients(file);
      const auto ours = SafetensorsFile::open(file);
      for (const auto& tensor : hugging_face_tensors(m.table)) {
        INFO(tensor.name);
        const auto expected = ScalarModel::read<float>(m.golden, "grad." + tensor.name);
        const auto stride = ScalarModel::read<std::int64_t>(m.golden, "grad_stride." + tensor.name);
        const auto got = ScalarModel::read<float>(ours, tensor.name);
        double difference = 0, norm = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          difference += std::pow(double(got[i * stride[0]]) - expected[i], 2);
          norm += std::pow(double(expected[i]), 2);
        }
        CHECK(norm > 0);
        CHECK(std::sqrt(difference) <= 1e-4 * std::sqrt(norm) + 1e-9);
      }
      std::filesystem::remove(file);
    }
}

TEST_CASE("gradients of values have the same bits in chunks of any size") {
  const Group self = Group::self();
  std::vector<float> first;
  for (const int chunk : {512, 1, 9}) {
    TrainPassOptions options;
    options.logit_rows = chunk;
    ScalarModel m("qwen2_a", self, options);
    const auto got = m.gradient();
    if (first.empty()) first = got;
    CHECK(same_bits(got, first));
  }
}

TEST_CASE("all ranks of a group have the same gradient of the scalar head") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  ScalarModel one("llama_b", self), many("llama_b", world);
  const auto part = [](ScalarModel& m) {
    m.gradient();
    const float* const score = m.gradients->vector(ParamRole::kScore).f32();
    return std::vector<float>(score, score + m.config.hidden);
  };
  // The head sees whole hidden states, so even the bits are those of one rank.
  CHECK(same_bits(part(many), part(one)));
}

TEST_CASE("what is written with a scalar head is what is read") {
  if (Group::world(MPI_COMM_WORLD).size() > 1) return;
  const Group self = Group::self();
  ScalarModel m("qwen3_b", self);
  const auto directory = scratch("model");
  std::filesystem::create_directories(directory);
  {
    HuggingFaceWriter writer(directory / "model.safetensors", m.table, TensorType::kF32);
    for (const auto& piece : m.local.pieces())
      writer.write_piece(piece.id,
                         {m.values.data() + piece.offset, static_cast<std::size_t>(piece.size)});
    writer.commit();
  }
  const HuggingFaceReader reader(directory, m.table);
  const LocalParams::Piece score = m.local.pieces().back();
  REQUIRE(m.table.tensors()[m.table.tensor_of_piece(score.id)].role == ParamRole::kScore);
  std::vector<float> read(static_cast<std::size_t>(score.size));
  reader.read_piece(score.id, read);
  CHECK(same_bits(read, ScalarModel::read<float>(m.golden, "score")));
  std::filesystem::remove_all(directory);
  // A language model has no such weights: they are drawn, or missed.
  CHECK_THROWS_AS(HuggingFaceReader(golden_dir("qwen3_b"), m.table), Error);
  HuggingFaceReader(golden_dir("qwen3_b"), m.table, 5).read_piece(score.id, read);
  std::vector<float> drawn(read.size());
  draw_score(5, drawn);
  CHECK(same_bits(read, drawn));
}

TEST_CASE("a value that is not finite is an error") {
  const Group self = Group::self();
  ScalarModel m("llama_b", self);
  m.values[m.local.offset(m.table.index_of(ParamRole::kScore))] =
      std::numeric_limits<float>::quiet_NaN();
  m.pack();
  CHECK_THROWS_AS(m.forward_values(), Error);
}
