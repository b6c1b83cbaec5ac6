// SPDX-License-Identifier: Apache-2.0
#include "rl/TeacherForcing.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "rl/LearningModel.hpp"
#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

using Spans = std::vector<std::span<const std::int32_t>>;

// Groups of random samples that share a prompt, one of them with an empty response.
struct Batch {
  explicit Batch(std::vector<Sample> list) : samples(std::move(list)) {
    samples[4].response.clear();
    for (const Sample& s : samples) {
      prompts.emplace_back(s.prompt);
      responses.emplace_back(s.response);
    }
  }

  std::vector<Sample> samples;
  Spans prompts, responses;
};

}  // namespace

TEST_CASE("scores are the log-probs of transformers") {
  const Group self = Group::self();
  GoldenModel m("llama_b", self);
  const PackedSequences s = m.sequences();
  const auto expected = m.read<float>("log_probs");
  Spans prompts, responses;
  const std::span<const std::int32_t> ids(s.ids);
  std::size_t begin = 0;
  for (const int length : s.lengths) {
    prompts.push_back(ids.subspan(begin, 3));
    responses.push_back(ids.subspan(begin + 3, length - 3));
    begin += length;
  }
  const ScoreContext context{m.exec, *m.view, m.parallel, *m.pass, {}, {m.config.vocab, 1.0f}};
  const auto scores = score_responses(context, prompts, responses);
  REQUIRE(scores.size() == s.lengths.size());
  begin = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    REQUIRE(scores[i].size() == responses[i].size());
    for (std::size_t t = 0; t < scores[i].size(); ++t)
      CHECK(std::abs(scores[i][t] - expected[begin + 3 + t]) < 4e-5);  // f32 noise
    begin += s.lengths[i];
  }
}

TEST_CASE("scores have the same bits in micro-batches of any size and in any order") {
  const Group self = Group::self();
  LearningModel large({.dp = self, .tp = self}), small({.dp = self, .tp = self, .max_rows = 32});
  Batch batch(large.random_samples());
  const auto scores = score_responses(large.context(), batch.prompts, batch.responses);
  REQUIRE(scores.size() == batch.samples.size());
  for (std::size_t i = 0; i < scores.size(); ++i)
    CHECK(scores[i].size() == batch.samples[i].response.size());
  CHECK(scores[4].empty());
  const auto in_parts = score_responses(small.context(), batch.prompts, batch.responses);
  std::reverse(batch.prompts.begin(), batch.prompts.end());
  std::reverse(batch.responses.begin(), batch.responses.end());
  const auto reversed = score_responses(large.context(), batch.prompts, batch.responses);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    CHECK(same_bits(in_parts[i], scores[i]));
    CHECK(same_bits(reversed[scores.size() - 1 - i], scores[i]));
  }
}

TEST_CASE("scores have the same bits for every tensor-parallel degree") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  LearningModel one({.dp = self, .tp = self}), many({.dp = self, .tp = world});
  const Batch batch(one.random_samples());
  const auto expected = score_responses(one.context(), batch.prompts, batch.responses),
             scores = score_responses(many.context(), batch.prompts, batch.responses);
  REQUIRE(scores.size() == expected.size());
  for (std::size_t i = 0; i < scores.size(); ++i) CHECK(same_bits(scores[i], expected[i]));
}

TEST_CASE("nothing to score is no score") {
  const Group self = Group::self();
  LearningModel model({.dp = self, .tp = self});
  CHECK(score_responses(model.context(), {}, {}).empty());
}
