// SPDX-License-Identifier: Apache-2.0
#include "optim/OptimizerStep.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "base/Log.hpp"
#include "model/GoldenModel.hpp"
#include "support/CapturedLog.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// A model on data-parallel ranks, which learns from gradients that are set by hand.
struct Training {
  Training() { model.gradients->clear(model.exec); }

  MemoryPlan plan() {
    MemoryPlan plan;
    ShardedAdamW::add_memory(plan, model.local, dp, {});
    return plan;
  }
  OptimizerReport step() {
    return make_step(model.exec, optimizer, *model.gradients, schedule, [&] { ++published; });
  }

  Group dp = Group::world(MPI_COMM_WORLD), self = Group::self();
  GoldenModel model{"llama_a", self};
  Arena arena{plan()};
  AdamWOptions adamw{.on_non_finite = AdamWOptions::OnNonFinite::kSkip};
  ShardedAdamW optimizer{model.local, self, dp, adamw, arena};
  ScheduleOptions schedule{.peak = 0.5, .warmup_steps = 4};
  int published = 0;
};

}  // namespace

TEST_CASE("a step has the rate of the schedule and publishes the weights") {
  Training t;
  std::fill_n(t.optimizer.master().data(), t.optimizer.size(), 1.0f);
  for (int i = 0; i < 6; ++i) {
    CHECK(t.step().learning_rate == learning_rate(t.schedule, i));
    CHECK(t.published == i + 1);
    CHECK(t.optimizer.steps() == i + 1);
  }
  // Only the decay of the weights has moved them.
  if (t.optimizer.size() > 0) CHECK(t.optimizer.master()(0) < 1.0f);
}

TEST_CASE("the log names the gradient for which a step was skipped") {
  Training t;
  OptimizerReport report;
  CHECK(logged_by([&] { report = t.step(); }).empty());
  const int bad = t.model.table.index_of(ParamRole::kGateUp, 1);
  t.model.gradient_values()(t.model.local.offset(bad)) = std::numeric_limits<float>::quiet_NaN();
  const std::string log = logged_by([&] { report = t.step(); });
  if (log_rank() <= 0)
    CHECK_THAT(log, ContainsSubstring("skipped an optimizer step: the gradient of "
                                      "layers.1.gate_up is not finite"));
  CHECK(report.skipped);
  CHECK(t.optimizer.steps() == 1);
  CHECK(t.published == 2);
  t.model.gradients->clear(t.model.exec);
  CHECK_FALSE(t.step().skipped);
}
