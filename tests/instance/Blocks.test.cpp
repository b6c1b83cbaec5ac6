// SPDX-License-Identifier: Apache-2.0
#include "instance/TrainingModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/Random.hpp"
#include "session/SharedArena.hpp"
#include "support/Bits.hpp"
#include "support/Halves.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr int kTokens = 48;

// A golden model that is trained on the given ranks, on one sequence per replica. Sequences of
// another `seed` are others.
class Trained {
 public:
  Trained(const Ranks& ranks, int tp, std::uint64_t seed)
      : ranks_(ranks),
        files_(TAPER_GOLDEN_DIR "/models/llama_b"),
        model_(files_, ranks, options(tp)) {
    MemoryPlan plan;
    model_.add_memory(plan);
    arena_ = make_arena(ranks, plan);
    model_.create(*arena_, files_.rope_table(kTokens));
    model_.load_masters();
    RandomStream random(seed, RandomPurpose::kTest, 0,
                        static_cast<std::uint64_t>(model_.dp_group().rank()));
    for (int i = 0; i < kTokens; ++i)
      sequence_.ids.push_back(static_cast<std::int32_t>(random.below(files_.config.vocab)));
    sequence_.lengths = {kTokens};
    rows_.resize(kTokens - 1);
    std::iota(rows_.begin(), rows_.end(), 0);
    targets_.assign(sequence_.ids.begin() + 1, sequence_.ids.end());
  }

  // An optimizer step towards the tokens of the sequences.
  void step() {
    model_.gradients().clear(ranks_.exec);
    forward();
    model_.pass().backward(
        ranks_.exec, model_.train_view(), model_.train_parallel(), rows_, targets_, head(),
        [](std::size_t, float, float) {
          return TokenSlope{-1.0f / kTokens, 0.0f};
        },
        model_.gradients());
    model_.optimizer().step(ranks_.exec, model_.gradients(), 1e-3);
    model_.publish();
  }
  // The masters that this rank owns.
  std::vector<float> masters() const {
    const FloatVector mine = model_.optimizer().master();
    return {mine.data(), mine.data() + mine.size()};
  }
  // Of the tokens of the sequence, by the published weights.
  std::vector<float> log_probs() {
    std::vector<float> values(rows_.size());
    forward();
    model_.pass().log_probs(ranks_.exec, model_.train_view(), model_.train_parallel(), rows_,
                            targets_, head(), values, {});
    return values;
  }

 private:
  static TrainingModelOptions options(int tp) {
    TrainingModelOptions o;
    o.type = WeightType::kF32;
    o.train_tp = tp;
    o.pass.max_rows = kTokens;
    return o;
  }
  HeadOptions head() const { return {files_.valid_ids(), 1.0f}; }
  void forward() {
    model_.pass().forward(ranks_.exec, model_.train_view(), model_.train_parallel(), sequence_);
  }

  const Ranks& ranks_;
  ModelFiles files_;
  TrainingModel model_;
  std::unique_ptr<Arena> arena_;
  PackedSequences sequence_;
  std::vector<int> rows_;
  std::vector<std::int32_t> targets_;
};

}  // namespace

TEST_CASE("a model takes the same steps on a block of ranks as on a world of as many") {
  const TestRanks all;
  const Half half(all.ranks.rank());
  const Ranks block = all.ranks.block(half.first, half.size, {});
  const TestRanks alone({}, WorldOfHalf(half).comm, half.size);
  // The blocks do not do the same.
  const std::uint64_t seed = half.is_upper() ? 1 : 2;
  const int steps = half.is_upper() ? 1 : 3;
  for (const int tp : block.chain.degrees()) {
    INFO("tensor-parallel degree " << tp);
    Trained expected(alone.ranks, tp, seed), got(block, tp, seed);
    const std::vector<float> before = got.masters(), log_probs_before = got.log_probs();
    for (int i = 0; i < steps; ++i) got.step();
    for (int i = 0; i < steps; ++i) expected.step();
    CHECK_FALSE(same_bits(got.masters(), before));
    CHECK_FALSE(same_bits(got.log_probs(), log_probs_before));
    CHECK(same_bits(got.masters(), expected.masters()));
    CHECK(same_bits(got.log_probs(), expected.log_probs()));
  }
}
