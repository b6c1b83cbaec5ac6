// SPDX-License-Identifier: Apache-2.0
#include "optim/ShardedAdamW.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "model/GoldenModel.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// A golden model that data-parallel ranks train together, each on some of its sequences.
class Training {
 public:
  Training(const std::string& name, const Group& dp, const Group& self, const AdamWOptions& options)
      : dp_(dp),
        model_(name, self),
        arena_(plan(options)),
        adamw_(model_.local, self, dp, options, arena_) {
    std::copy_n(model_.values.begin() + adamw_.begin(), adamw_.size(), adamw_.master().data());
    const PackedSequences all = model_.sequences();
    std::vector<int> rows;
    std::vector<std::int32_t> targets;
    GoldenModel::predictions(all, rows, targets);
    total_ = rows.size();
    int begin = 0;
    for (std::size_t i = 0; i < all.lengths.size(); ++i) {
      const int length = all.lengths[i];
      if (static_cast<int>(i) % dp.size() == dp.rank()) {
        mine_.ids.insert(mine_.ids.end(), all.ids.begin() + begin,
                         all.ids.begin() + begin + length);
        mine_.lengths.push_back(length);
      }
      begin += length;
    }
  }

  // Sets the local gradient; returns the loss over all ranks.
  double accumulate() {
    model_.gradients->clear(model_.exec);
    std::vector<int> rows;
    std::vector<std::int32_t> targets;
    GoldenModel::predictions(mine_, rows, targets);
    std::vector<double> loss{0.0};
    if (!rows.empty()) {
      const TokenSlope slope{-1.0f / static_cast<float>(total_), 0.0f};
      const auto add_loss = [&](std::size_t, float log_prob, float) {
        loss[0] -= log_prob;
        return slope;
      };
      const HeadOptions head{model_.config.vocab, 1.0f};
      model_.pass->forward(model_.exec, *model_.view, model_.parallel, mine_);
      model_.pass->backward(model_.exec, *model_.view, model_.parallel, rows, targets, head,
                            add_loss, *model_.gradients);
    }
    all_reduce_ordered_sum(dp_, loss);
    return loss[0] / static_cast<double>(total_);
  }

  OptimizerReport step(double rate) {
    const OptimizerReport report = adamw_.step(model_.exec, *model_.gradients, rate);
    std::vector<std::int64_t> counts(dp_.size());
    all_gather(dp_, counts, std::vector<std::int64_t>{adamw_.size()});
    all_gather_v(dp_, model_.values, adamw_.master(), counts);
    model_.pack();
    return report;
  }

  GoldenModel& model() { return model_; }

 private:
  MemoryPlan plan(const AdamWOptions& options) {
    MemoryPlan plan;
    ShardedAdamW::add_memory(plan, model_.local, dp_, options);
    return plan;
  }

  const Group& dp_;
  GoldenModel model_;
  Arena arena_;
  ShardedAdamW adamw_;
  PackedSequences mine_;
  std::size_t total_ = 0;
};

}  // namespace

TEST_CASE("ten steps follow PyTorch's losses and gradient norms on any number of replicas") {
  const Group dp = Group::world(MPI_COMM_WORLD), self = Group::self();
  for (const auto& name : kGoldenModels)
    for (const bool clipped : {false, true}) {
      INFO(name << (clipped ? " clipped" : ""));
      AdamWOptions options;
      options.clip_norm = clipped ? 0.5 : 0.0;
      Training training(name, dp, self, options);
      const std::string series = clipped ? "adamw_clipped." : "adamw.";
      const auto losses = training.model().read<float>(series + "losses");
      const auto norms = training.model().read<float>(series + "grad_norms");
      for (std::size_t s = 0; s < norms.size(); ++s) {
        CHECK(std::abs(training.accumulate() - losses[s]) < 1e-5 * losses[s]);
        CHECK(std::abs(training.step(1e-3).grad_norm - norms[s]) < 2e-5 * norms[s]);
      }
      CHECK(std::abs(training.accumulate() - losses.back()) < 1e-5 * losses.back());
    }
}

TEST_CASE("a gradient that is not finite stops or skips the step and names the tensor") {
  const Group dp = Group::world(MPI_COMM_WORLD), self = Group::self();
  AdamWOptions options;
  Training stopping("llama_a", dp, self, options);
  stopping.accumulate();
  auto& model = stopping.model();
  const int bad = model.table.index_of(ParamRole::kGateUp, 1);
  model.gradient_values()(model.local.offset(bad) + 5) = std::numeric_limits<float>::quiet_NaN();
  try {
    stopping.step(1e-3);
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("layers.1.gate_up") != std::string::npos);
  }
  options.on_non_finite = AdamWOptions::OnNonFinite::kSkip;
  Training skipping("llama_a", dp, self, options);
  const auto before = skipping.model().values;
  skipping.accumulate();
  skipping.model().gradient_values()(skipping.model().local.offset(bad)) =
      std::numeric_limits<float>::infinity();
  const OptimizerReport report = skipping.step(1e-3);
  CHECK(report.skipped);
  CHECK(report.bad_tensor == "layers.1.gate_up");
  CHECK(skipping.model().values == before);
  skipping.accumulate();
  CHECK_FALSE(skipping.step(1e-3).skipped);
  CHECK(skipping.model().values != before);
}

TEST_CASE("state that is kept on the host is planned as such") {
  const Group self = Group::self();
  const GoldenModel model("llama_a", self);
  const auto on_host = [&](AdamWOptions::Offload offload) {
    MemoryPlan plan;
    AdamWOptions options;
    options.offload = offload;
    ShardedAdamW::add_memory(plan, model.local, self, options);
    return plan.bytes(MemoryPhase::kAlways, MemoryKind::kStaging);
  };
  const std::int64_t masters = arena_bytes(model.local.size() * std::int64_t{sizeof(float)});
  CHECK(on_host(AdamWOptions::Offload::kNone) == 0);
  CHECK(on_host(AdamWOptions::Offload::kMoments) == 2 * masters);
  CHECK(on_host(AdamWOptions::Offload::kAll) == 3 * masters);
}
