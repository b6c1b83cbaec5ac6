// SPDX-License-Identifier: Apache-2.0
//
// Prompts that their samples share in training (PackedSequences::shared).
#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <utility>

#include "comm/Group.hpp"
#include "model/GoldenModel.hpp"
#include "rl/MicroBatch.hpp"
#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Samples whose prompts begin and end before, at and behind the end of a page.
PackedSamples samples(int ids, bool shares_prompts) {
  PackedSamples packed;
  packed.shares_prompts = shares_prompts;
  int next = 0;
  const auto tokens = [&](int count) {
    std::vector<std::int32_t> list;
    for (int i = 0; i < count; ++i) list.push_back((7 * next++ + 3) % ids);
    return list;
  };
  for (const auto& [length, responses] : std::vector<std::pair<int, std::vector<int>>>{
           {70, {20, 1, 64}}, {1, {5, 6}}, {2, {9}}, {65, {30, 30}}, {66, {1, 130}}}) {
    const auto prompt = tokens(length);
    for (const int response : responses) packed.add(prompt, tokens(response));
  }
  return packed;
}

struct Learned {
  std::vector<float> log_probs, gradient;
  int rows;
};

// The loss has another slope at each token, so that no two samples give the same.
Learned learn(const std::string& model, const Group& group, bool shares_prompts,
              Checkpointing checkpointing) {
  TrainPassOptions options;
  options.shares_prefixes = shares_prompts;
  options.checkpointing = checkpointing;
  GoldenModel m(model, group, WeightType::kF32, options);
  const PackedSamples packed = samples(m.config.vocab, shares_prompts);
  Learned learned{std::vector<float>(packed.rows.size()), {}, packed.sequences.rows()};
  m.pass->forward(m.exec, *m.view, m.parallel, packed.sequences);
  m.pass->backward(
      m.exec, *m.view, m.parallel, packed.rows, packed.targets, {m.config.vocab, 1.0f},
      [&](std::size_t i, float log_prob, float) {
        learned.log_probs[i] = log_prob;
        return TokenSlope{std::sin(static_cast<float>(i)) / 100.0f, 0.0f};
      },
      *m.gradients);
  m.exec.fence();
  const FloatVector values = m.gradient_values();
  learned.gradient.assign(values.data(), values.data() + values.size());
  return learned;
}

double norm(const std::vector<float>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

}  // namespace

TEST_CASE("a shared prompt changes no log-prob, and gradients by rounding alone") {
  const Group world = Group::world(MPI_COMM_WORLD);
  for (const auto& name : kGoldenModels) {
    INFO(name);
    if (world.size() > read_model_config(golden_dir(name)).kv_heads) continue;
    for (const auto checkpointing : {Checkpointing::kNo, Checkpointing::kYes}) {
      const Learned whole = learn(name, world, false, checkpointing),
                    shared = learn(name, world, true, checkpointing);
      CHECK(same_bits(whole.log_probs, shared.log_probs));
      CHECK(whole.rows - shared.rows == 2 * 69 + 64 + 65);
      std::vector<float> difference;
      for (std::size_t i = 0; i < whole.gradient.size(); ++i)
        difference.push_back(whole.gradient[i] - shared.gradient[i]);
      CHECK(norm(difference) <= 3e-6 * norm(whole.gradient));
    }
  }
}
