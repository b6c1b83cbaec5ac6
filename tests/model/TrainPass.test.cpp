// SPDX-License-Identifier: Apache-2.0
#include "model/TrainPass.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "comm/Group.hpp"
#include "model/GoldenModel.hpp"
#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

struct Scores {
  std::vector<float> log_prob, entropy;
};

Scores score(GoldenModel& m, const PackedSequences& s) {
  std::vector<int> rows;
  std::vector<std::int32_t> targets;
  GoldenModel::predictions(s, rows, targets);
  Scores scores{std::vector<float>(rows.size()), std::vector<float>(rows.size())};
  m.pass->forward(m.exec, *m.view, m.parallel, s);
  m.pass->log_probs(m.exec, *m.view, m.parallel, rows, targets, {m.config.vocab, 1.0f},
                    scores.log_prob, scores.entropy);
  return scores;
}

Group world() {
  return Group::world(MPI_COMM_WORLD);
}

}  // namespace

TEST_CASE("log-probs equal those of transformers within f32 noise") {
  for (const auto& name : kGoldenModels) {
    INFO(name);
    const Group self = Group::self();
    GoldenModel m(name, self);
    const PackedSequences s = m.sequences();
    const Scores scores = score(m, s);
    const auto expected = m.read<float>("log_probs");
    std::size_t i = 0, position = 0;
    double worst = 0;
    for (const int length : s.lengths) {
      for (int p = 1; p < length; ++p, ++i)
        worst = std::max<double>(worst, std::abs(scores.log_prob[i] - expected[position + p]));
      position += length;
    }
    CHECK(worst < 4e-5);
  }
}

TEST_CASE("log-probs have the same bits for every tensor-parallel degree") {
  const Group group = world(), self = Group::self();
  for (const auto& name : kGoldenModels) {
    INFO(name);
    GoldenModel one(name, self);
    if (group.size() > std::min(one.config.heads, one.table.mlp_blocks())) continue;
    GoldenModel many(name, group);
    const PackedSequences s = one.sequences();
    const Scores a = score(one, s), b = score(many, s);
    CHECK(same_bits(a.log_prob, b.log_prob));
  }
}

// Blocks two by two: two leaves of the MLP, the last one shorter, and three of the vocabulary.
TEST_CASE("log-probs and gradients have the same bits on two ranks if leaves have two blocks") {
  const Group group = world(), self = Group::self();
  if (group.size() > 2) return;
  TrainPassOptions options;
  for (const Arithmetic arithmetic : {Arithmetic::kF32, Arithmetic::kBf16}) {
    INFO("arithmetic " << static_cast<int>(arithmetic));
    options.precision.arithmetic = arithmetic;
    const auto load = [&](const Group& on, const LeafBlocks& leaf_blocks) {
      return std::make_unique<GoldenModel>("llama_b", on, WeightType::kBf16, options, leaf_blocks);
    };
    const auto one = load(self, {2, 2}), many = load(group, {2, 2}), narrow = load(self, {});
    const PackedSequences s = one->sequences();
    const Scores scores = score(*one, s);
    CHECK(same_bits(scores.log_prob, score(*many, s).log_prob));
    for (GoldenModel* m : {one.get(), many.get(), narrow.get()}) m->train(s);
    const FloatVector wide_sums = one->gradient_values(), narrow_sums = narrow->gradient_values();
    CHECK(std::equal(wide_sums.data(), wide_sums.data() + wide_sums.size(), narrow_sums.data()) ==
          !rounds_operands(arithmetic));
    for (const LocalParams::Piece& piece : many->local.pieces()) {
      const auto whole = one->local.pieces()[static_cast<std::size_t>(piece.id)];
      const float* const expected = one->gradient_values().data() + whole.offset;
      const float* const got = many->gradient_values().data() + piece.offset;
      INFO("piece " << piece.id);
      CHECK(std::memcmp(expected, got, sizeof(float) * static_cast<std::size_t>(piece.size)) == 0);
    }
  }
}

TEST_CASE("log-probs have the same bits in any packing") {
  const Group self = Group::self();
  GoldenModel m("llama_b", self);
  const PackedSequences all = m.sequences();
  const Scores together = score(m, all);
  std::vector<float> alone;
  int begin = 0;
  for (const int length : all.lengths) {
    const PackedSequences one{{all.ids.begin() + begin, all.ids.begin() + begin + length},
                              {length}};
    const Scores s = score(m, one);
    alone.insert(alone.end(), s.log_prob.begin(), s.log_prob.end());
    begin += length;
  }
  CHECK(same_bits(together.log_prob, alone));
}

TEST_CASE("loss and gradients equal those of transformers") {
  const Group self = Group::self();
  for (const auto& name : kGoldenModels) {
    for (const auto checkpointing : {Checkpointing::kNo, Checkpointing::kYes}) {
      INFO(name);
      TrainPassOptions options;
      options.checkpointing = checkpointing;
      options.logit_rows = 32;
      GoldenModel m(name, self, WeightType::kF32, options);
      const double loss = m.train(m.sequences());
      CHECK(std::abs(loss - m.read<float>("loss")[0]) < 1e-5);
      // Our pieces in Hugging Face layout, through the writer that also saves checkpoints.
      const auto file = std::filesystem::temp_directory_path() /
                        ("taper-grad-" + std::to_string(::getpid()) + ".safetensors");
      m.write_gradients(file);
      const auto ours = SafetensorsFile::open(file);
      for (const auto& tensor : hugging_face_tensors(m.table)) {
        INFO(tensor.name);
        const auto expected = m.read<float>("grad." + tensor.name);
        const auto stride = m.read<std::int64_t>("grad_stride." + tensor.name)[0];
        const auto& view = ours.tensor(tensor.name);
        std::vector<float> got(view.bytes.size() / 4);
        std::memcpy(got.data(), view.bytes.data(), view.bytes.size());
        double difference = 0, norm = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          difference += std::pow(double(got[i * stride]) - expected[i], 2);
          norm += std::pow(double(expected[i]), 2);
        }
        CHECK(std::sqrt(difference) <= 1e-4 * std::sqrt(norm) + 1e-9);
      }
      std::filesystem::remove(file);
    }
  }
}
