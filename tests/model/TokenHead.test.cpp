// SPDX-License-Identifier: Apache-2.0
#include "model/TokenHead.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "model/GoldenModel.hpp"
#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr int kRows = 21;

// Some rows of hidden states, and the results of the head on them.
struct HeadRun {
  HeadRun(GoldenModel& model, int chunk_rows)
      : m(model),
        memory(TokenHead::floats(m.table, m.parallel, chunk_rows)),
        head(m.table, m.parallel, chunk_rows, memory.data()),
        hidden(static_cast<std::size_t>(kRows) * m.config.hidden),
        d_hidden(hidden.size(), 0.0f),
        log_prob(kRows),
        entropy(kRows) {
    RandomStream random(3, RandomPurpose::kTest, 0, 0);
    for (float& x : hidden) x = static_cast<float>(random.below(2000)) * 1e-3f - 1.0f;
    for (int i = 0; i < kRows; ++i) {
      rows.push_back((i * 5) % kRows);
      targets.push_back((i * 37) % m.config.vocab);
    }
    const FloatVector gradient = m.gradient_values();
    std::fill_n(gradient.data(), gradient.size(), 0.0f);
  }

  ConstFloatMatrix states() const {
    return ConstFloatMatrix(hidden.data(), kRows, m.config.hidden);
  }
  void score() {
    head.log_probs(m.exec, *m.view, m.parallel, states(), rows, targets, {m.config.vocab, 0.7f},
                   log_prob, entropy);
  }
  void train(const TokenLoss& loss) {
    const ParamRole role = m.config.tied ? ParamRole::kEmbedding : ParamRole::kHead;
    head.backward(m.exec, *m.view, m.parallel, states(), rows, targets, {m.config.vocab, 0.7f},
                  loss, FloatMatrix(d_hidden.data(), kRows, m.config.hidden),
                  m.gradients->matrix(role), m.gradients->vector(ParamRole::kFinalNorm));
  }

  GoldenModel& m;
  std::vector<float> memory;
  TokenHead head;
  std::vector<float> hidden, d_hidden, log_prob, entropy;
  std::vector<int> rows;
  std::vector<std::int32_t> targets;
};

}  // namespace

TEST_CASE("log-probs have the same bits in chunks of any size and on any number of ranks") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  GoldenModel one("llama_b", self), many("llama_b", world);
  HeadRun whole(one, kRows);
  whole.score();
  for (const int chunk : {1, 4, kRows, 64}) {
    HeadRun run(many, chunk);
    run.score();
    CHECK(same_bits(run.log_prob, whole.log_prob));
    for (int i = 0; i < kRows; ++i)  // a statistic: its sum depends on the shards
      CHECK(std::abs(run.entropy[i] - whole.entropy[i]) < 1e-5f * whole.entropy[i]);
  }
}

TEST_CASE("the backward pass hands the loss the log-probs and entropies of the forward pass") {
  const Group world = Group::world(MPI_COMM_WORLD);
  GoldenModel m("llama_b", world);
  HeadRun run(m, 8);
  run.score();
  std::vector<float> log_prob(kRows), entropy(kRows);
  std::vector<std::size_t> order;
  run.train([&](std::size_t i, float lp, float e) {
    order.push_back(i);
    log_prob[i] = lp;
    entropy[i] = e;
    return TokenSlope{};
  });
  CHECK(same_bits(log_prob, run.log_prob));
  CHECK(same_bits(entropy, run.entropy));
  REQUIRE(order.size() == kRows);
  CHECK(std::is_sorted(order.begin(), order.end()));
  for (const float x : run.d_hidden) REQUIRE(x == 0.0f);  // a loss without slopes
}

TEST_CASE("gradients have the same bits in chunks of any size") {
  const Group self = Group::self();
  GoldenModel m("llama_b", self);
  const auto slopes = [](std::size_t i, float log_prob, float entropy) {
    return TokenSlope{log_prob * 0.1f, i % 2 == 0 ? entropy * 0.01f : 0.0f};
  };
  std::vector<float> d_hidden, gradient;
  for (const int chunk : {kRows, 1, 6}) {
    HeadRun run(m, chunk);
    run.train(slopes);
    const FloatVector all = m.gradient_values();
    const std::vector<float> got(all.data(), all.data() + all.size());
    if (d_hidden.empty()) {
      d_hidden = run.d_hidden;
      gradient = got;
    }
    CHECK(same_bits(run.d_hidden, d_hidden));
    CHECK(same_bits(got, gradient));
    CHECK(std::any_of(got.begin(), got.end(), [](float x) { return x != 0.0f; }));
  }
}

TEST_CASE("the gradient by hidden states is that of finite differences") {
  const Group self = Group::self();
  GoldenModel m("llama_b", self);
  HeadRun run(m, 8);
  run.train([](std::size_t i, float, float) {
    return TokenSlope{i % 3 == 0 ? 1.0f : -0.5f, i % 4 == 0 ? 0.25f : 0.0f};
  });
  const auto loss = [&] {
    run.score();
    double sum = 0;
    for (int i = 0; i < kRows; ++i)
      sum +=
          (i % 3 == 0 ? 1.0 : -0.5) * run.log_prob[i] + (i % 4 == 0 ? 0.25 : 0.0) * run.entropy[i];
    return sum;
  };
  constexpr float kStep = 1e-2f;
  for (const int index : {0, 7, 100, 1003, kRows * 96 - 1}) {
    const float x = run.hidden[index];
    run.hidden[index] = x + kStep;
    const double above = loss();
    run.hidden[index] = x - kStep;
    const double below = loss();
    run.hidden[index] = x;
    // f32 sums of 21 log-probs of some 6 each: noise of about 1e-5 over a step of 2e-2.
    CHECK(std::abs((above - below) / (2 * kStep) - run.d_hidden[index]) < 2e-3);
  }
}

TEST_CASE("the gradient by hidden states keeps the small terms of a large vocabulary") {
  // One likely id, and 32767 others that share 0.1 % of the probability: in one running sum each of
  // their terms would be lost behind that of the first.
  ModelConfig config;
  config.layers = config.heads = config.kv_heads = 1;
  config.hidden = config.head_dim = config.intermediate = 64;
  config.vocab = 32768;
  config.tied = true;
  const auto weight = [](int id, int c) {
    return id == 0 ? 17.3f / 64 : (c % 2 == 0 ? 0.05f : -0.05f) * static_cast<float>(1 + id % 3);
  };
  const Group self = Group::self();
  const ParamTable table(config);
  const ModelParallel parallel(table, self, Arithmetic::kF32);
  const LocalParams local(table, parallel.shard());
  MemoryPlan plan;
  PackedModel::add_memory(plan, "test", local, WeightType::kF32, WithBackward::kYes);
  Arena arena(plan);
  PackedModel packed("test", local, parallel.shard(), WeightType::kF32, WithBackward::kYes, arena);
  std::vector<float> values(local.size(), 1.0f);  // norms
  const int embedding = table.index_of(ParamRole::kEmbedding);
  for (int id = 0; id < config.vocab; ++id)
    for (int c = 0; c < config.hidden; ++c)
      values[local.offset(embedding) + std::int64_t{id} * config.hidden + c] = weight(id, c);
  const HostExec exec;
  for (std::size_t t = 0; t < table.tensors().size(); ++t)
    packed.pack(exec, static_cast<int>(t), values.data() + local.offset(static_cast<int>(t)));
  const ModelView view(packed, parallel.shard());

  std::vector<float> memory(TokenHead::floats(table, parallel, 1));
  TokenHead head(table, parallel, 1, memory.data());
  const std::vector<float> hidden(config.hidden, 1.0f);
  std::vector<float> d_hidden(config.hidden, 0.0f), d_head(local.size()), d_norm(config.hidden);
  head.backward(
      exec, view, parallel, ConstFloatMatrix(hidden.data(), 1, config.hidden), std::vector<int>{0},
      std::vector<std::int32_t>{0}, {config.vocab, 1.0f},
      [](std::size_t, float, float) {
        return TokenSlope{1.0f, 0.0f};
      },
      FloatMatrix(d_hidden.data(), 1, config.hidden),
      FloatMatrix(d_head.data(), config.vocab, config.hidden),
      FloatVector(d_norm.data(), config.hidden));

  // The logits are 17.3 and zeros; the norm of a vector of ones takes the mean off its gradient.
  const double total = std::exp(17.3) + config.vocab - 1;
  std::vector<double> expected(config.hidden, 0.0);
  double mean = 0;
  for (int c = 0; c < config.hidden; ++c) {
    for (int id = 0; id < config.vocab; ++id)
      expected[c] += ((id == 0 ? 1.0 - std::exp(17.3) / total : -1.0 / total)) * weight(id, c);
    mean += expected[c] / config.hidden;
  }
  const double largest = std::abs(expected[0] - mean);
  for (int c = 0; c < config.hidden; ++c)
    CHECK(std::abs(d_hidden[c] - (expected[c] - mean)) < 2e-4 * largest);
}

TEST_CASE("logits that are not finite are an error") {
  const Group self = Group::self();
  GoldenModel m("llama_b", self);
  HeadRun run(m, 8);
  run.hidden[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(run.score(), Error);
}
