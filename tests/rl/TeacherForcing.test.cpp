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

TEST_CASE("log_probs are the log-probs of transformers") {
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
  const PassContext context{m.exec, *m.view, m.parallel, *m.pass, {}, {m.config.vocab, 1.0f}};
  const auto log_probs = response_log_probs(context, prompts, responses);
  REQUIRE(log_probs.size() == s.lengths.size());
  begin = 0;
  for (std::size_t i = 0; i < log_probs.size(); ++i) {
    REQUIRE(log_probs[i].size() == responses[i].size());
    for (std::size_t t = 0; t < log_probs[i].size(); ++t)
      CHECK(std::abs(log_probs[i][t] - expected[begin + 3 + t]) < 4e-5);  // f32 noise
    begin += s.lengths[i];
  }
}

TEST_CASE("log-probs have the same bits in micro-batches of any size and in any order") {
  const Group self = Group::self();
  LearningModel large({.dp = self, .tp = self}), small({.dp = self, .tp = self, .max_rows = 32});
  Batch batch(large.random_samples());
  const auto log_probs = response_log_probs(large.context(), batch.prompts, batch.responses);
  REQUIRE(log_probs.size() == batch.samples.size());
  for (std::size_t i = 0; i < log_probs.size(); ++i)
    CHECK(log_probs[i].size() == batch.samples[i].response.size());
  CHECK(log_probs[4].empty());
  const auto in_parts = response_log_probs(small.context(), batch.prompts, batch.responses);
  std::reverse(batch.prompts.begin(), batch.prompts.end());
  std::reverse(batch.responses.begin(), batch.responses.end());
  const auto reversed = response_log_probs(large.context(), batch.prompts, batch.responses);
  for (std::size_t i = 0; i < log_probs.size(); ++i) {
    CHECK(same_bits(in_parts[i], log_probs[i]));
    CHECK(same_bits(reversed[log_probs.size() - 1 - i], log_probs[i]));
  }
}

TEST_CASE("log-probs have the same bits for every tensor-parallel degree") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  LearningModel one({.dp = self, .tp = self}), many({.dp = self, .tp = world});
  const Batch batch(one.random_samples());
  const auto expected = response_log_probs(one.context(), batch.prompts, batch.responses),
             log_probs = response_log_probs(many.context(), batch.prompts, batch.responses);
  REQUIRE(log_probs.size() == expected.size());
  for (std::size_t i = 0; i < log_probs.size(); ++i) CHECK(same_bits(log_probs[i], expected[i]));
}

TEST_CASE("no sequences have no log-probs") {
  const Group self = Group::self();
  LearningModel model({.dp = self, .tp = self});
  CHECK(response_log_probs(model.context(), {}, {}).empty());
}
