// SPDX-License-Identifier: Apache-2.0
#include "rl/ExitTrainer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>

#include "model/HeadModel.hpp"
#include "rl/LearningModel.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr int kVocab = 70;

// A policy, and an exit behind one of its layers that knows every other id.
struct TestExit : LearningModel {
  TestExit(const Groups& g, const Group& tp, int capacity, int steps = 1)
      : LearningModel({g.self, tp}),
        tp_(tp),
        head(context().view.table().config(), kVocab, 3, g.self),
        arena(plan(head, g.world, capacity)),
        adamw(head.local, g.self, g.world, {.weight_decay = 0.0}, arena),
        gradient(static_cast<std::size_t>(head.local.size())),
        gradients(head.local, GradientType::kF32, gradient.data()),
        world_(g.world) {
    for (int i = 0; i < kVocab; ++i) ids.push_back(2 * i);
    std::copy_n(head.values.begin() + adamw.begin(), adamw.size(), adamw.master().data());
    ExitTrainerOptions options{{}, steps, 1.0f, capacity};
    options.schedule.peak = 1e-2;
    trainer = std::make_unique<ExitTrainer>(
        head.exec, options,
        std::vector<ExitTarget>{
            {1, head.view, head.parallel, gradients, adamw, [this] { publish(); }}},
        ids, g.world,
        arena.take<float>("exit", MemoryPhase::kAlways,
                          ExitTrainer::floats(head.table, head.parallel, 1, capacity)));
  }
  static MemoryPlan plan(const HeadModel& head, const Group& dp, int capacity) {
    MemoryPlan plan;
    ShardedAdamW::add_memory(plan, head.local, dp, {});
    plan.add(
        "exit", MemoryPhase::kAlways,
        ExitTrainer::floats(head.table, head.parallel, 1, capacity) * std::int64_t{sizeof(float)});
    return plan;
  }
  void publish() {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(world_.size()));
    all_gather(world_, counts, std::vector<std::int64_t>{adamw.size()});
    all_gather_v(world_, head.values, adamw.master(), counts);
    head.pack();
  }

  // One pass of the policy over the samples `mine`, and what the exit is shown of it.
  PackedSamples show(const std::vector<Sample>& samples, std::span<const int> mine) {
    PackedSamples packed;
    for (const int i : mine) packed.add(samples[i].prompt, samples[i].response);
    const PassContext c = context();
    c.pass.forward(c.exec, c.view, c.parallel, packed.sequences);
    trainer->collect(c.pass, packed, tp_);
    return packed;
  }
  DraftReport learn(const std::vector<Sample>& samples, std::span<const int> mine) {
    trainer->begin(0);
    show(samples, mine);
    return trainer->learn();
  }
  // Of the targets that the exit knows, in double precision: their mean cross entropy, and how many
  // there are.
  std::pair<double, int> loss(const std::vector<Sample>& samples, std::span<const int> mine) {
    PackedSamples packed;
    for (const int i : mine) packed.add(samples[i].prompt, samples[i].response);
    const PassContext c = context();
    c.pass.forward(c.exec, c.view, c.parallel, packed.sequences);
    const int h = head.config.hidden;
    double sum = 0;
    int count = 0;
    for (std::size_t i = 0; i < packed.rows.size(); ++i) {
      if (packed.targets[i] % 2 != 0 || packed.targets[i] >= 2 * kVocab) continue;
      std::vector<float> x(static_cast<std::size_t>(h));
      c.pass.copy_stream(c.exec, 1, std::vector<std::int32_t>{packed.rows[i]},
                         FloatMatrix(x.data(), 1, x.size()));
      double square = 0, mass = 0, chosen = 0;
      for (int k = 0; k < h; ++k) square += static_cast<double>(x[k]) * x[k];
      const double inv = 1 / std::sqrt(square / h + head.config.norm_eps);
      for (int row = 0; row < kVocab; ++row) {
        double logit = 0;
        for (int k = 0; k < h; ++k) logit += inv * x[k] * head.row(row)[k];
        mass += std::exp(logit);
        if (2 * row == packed.targets[i]) chosen = logit;
      }
      sum += std::log(mass) - chosen;
      ++count;
    }
    return {sum / count, count};
  }

  const Group& tp_;
  HeadModel head;
  Arena arena;
  ShardedAdamW adamw;
  std::vector<float> gradient;
  Gradients gradients;
  std::vector<std::int32_t> ids;
  const Group& world_;
  std::unique_ptr<ExitTrainer> trainer;
};

std::vector<int> share_of(const std::vector<Sample>& samples, const Group& group) {
  std::vector<int> mine;
  for (int i = group.rank(); i < std::ssize(samples); i += group.size()) mine.push_back(i);
  return mine;
}

}  // namespace

TEST_CASE("the loss is the cross entropy of the tokens that the exit knows, however shared out") {
  const Groups g;
  TestExit replicas(g, g.self, 1024), shards(g, g.world, 1024);
  const auto samples = replicas.random_samples();
  const std::vector<int> all = share_of(samples, g.self);
  const auto [expected, count] = replicas.loss(samples, all);
  REQUIRE(count > 20);
  const DraftReport by_samples = replicas.learn(samples, share_of(samples, g.world));
  CHECK(by_samples.steps == 1);
  CHECK(relative(expected, by_samples.loss) < 1e-4);
  // The ranks of a tensor-parallel group see the same rows and share them out.
  const DraftReport by_rows = shards.learn(samples, all);
  CHECK(relative(expected, by_rows.loss) < 1e-4);
}

TEST_CASE("an exit learns what it is shown, by all its mini-batches") {
  const Groups g;
  TestExit exit(g, g.self, 1024, 8);
  const auto samples = exit.random_samples();
  const auto mine = share_of(samples, g.world);
  const double before = exit.loss(samples, share_of(samples, g.self)).first;
  for (int i = 0; i < 4; ++i) CHECK(exit.learn(samples, mine).steps == 8);
  CHECK(exit.loss(samples, share_of(samples, g.self)).first < 0.8 * before);
}

TEST_CASE("a collection has room for so many rows, and takes every so many of more") {
  const Groups g;
  TestExit exit(g, g.self, 8);
  const auto samples = exit.random_samples();
  const std::vector<int> all = share_of(samples, g.self);
  exit.trainer->begin(0);
  exit.show(samples, all);
  CHECK(exit.trainer->is_full());
  exit.trainer->begin(1 << 20);
  exit.show(samples, all);
  CHECK_FALSE(exit.trainer->is_full());
  CHECK(exit.trainer->learn().steps == 1);  // of one row
  exit.trainer->begin(0);
  const DraftReport nothing = exit.trainer->learn();
  CHECK(nothing.steps == 0);
  CHECK(nothing.empty == 1);
}
