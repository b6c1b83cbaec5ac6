// SPDX-License-Identifier: Apache-2.0
#include "kernels/logits.hpp"

#include <cmath>

#include "kernels/CheckOp.hpp"
#include "kernels/reference/logits.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("statistics of logits equal the canonical ones over any shards", "[logits]") {
  check_compare(logits_op());
}

TEST_CASE("gradients of log-prob and entropy", "[logits]") {
  check_gradient(logits_op());
}

TEST_CASE("reference logits by hand", "[logits][reference]") {
  // At temperature 2 the probabilities are 1/4, 1/4, 1/2.
  const reference::Vector raw = {0.0, 0.0, 2.0 * std::log(2.0)};
  CHECK(std::abs(reference::log_sum_exp(raw, 2.0) - std::log(4.0)) < 1e-12);
  CHECK(std::abs(reference::log_prob(raw, 2.0, 2) - std::log(0.5)) < 1e-12);
  CHECK(std::abs(reference::entropy(raw, 2.0) - 1.5 * std::log(2.0)) < 1e-12);
  const reference::Vector g = reference::logit_gradient(raw, 2.0, 0, 1.0, 0.0);
  CHECK(std::abs(g[0] - 0.375) < 1e-12);
  CHECK(std::abs(g[1] + 0.125) < 1e-12);
  CHECK(std::abs(g[2] + 0.25) < 1e-12);
  const auto masses = reference::masses(raw, 2.0);
  const std::int64_t half = std::int64_t{1} << 39;
  CHECK(masses == std::vector<std::int64_t>{half, half, 2 * half});
  CHECK(reference::find_mass(masses, 0) == 0);
  CHECK(reference::find_mass(masses, half - 1) == 0);
  CHECK(reference::find_mass(masses, half) == 1);
  CHECK(reference::find_mass(masses, 4 * half - 1) == 2);
  CHECK(reference::find_mass(masses, 4 * half) == -1);
}

TEST_CASE("ids of logit -inf have no mass and no gradient", "[logits]") {
  flush_denormals();
  Floats logits(64, -INFINITY), max(1);
  logits[3] = 1.0f;
  logits[40] = 1.0f;
  const Exec exec;
  Staged<std::int64_t> mass(1), target = {std::int64_t{1} << 40};
  Staged<FoundLogit> found(1);
  Staged<std::int32_t> hit = {3};
  Staged<std::int64_t> weighted(1);
  scale_logits(exec, view(logits, 1, 64), view(max), 64, 1.0f);
  sum_masses(exec, view(mass), const_view(logits, 1, 64), const_view(max), 64);
  exec.fence();
  CHECK(mass[0] == std::int64_t{2} << 40);
  find_masses(exec, view(found), const_view(logits, 1, 64), const_view(max), const_view(target),
              64);
  exec.fence();
  CHECK(found[0].column == 40);
  CHECK(found[0].logit == 1.0f);
  sum_weighted_logits(exec, view(weighted), const_view(logits, 1, 64), const_view(max), 64);
  exec.fence();
  CHECK(weighted[0] == 0);
  const Staged<LogitSlope> slopes = {{1.0f + std::log(2.0f), std::log(2.0f), 1.0f, 0.5f}};
  logit_gradients(exec, view(logits, 1, 64), const_view(slopes), const_view(hit), 64, 1.0f);
  exec.fence();
  CHECK(std::abs(logits[3] - 0.5f) < 1e-6f);
  CHECK(std::abs(logits[40] + 0.5f) < 1e-6f);
  for (const int i : {0, 2, 4, 63}) CHECK(logits[i] == 0.0f);
}
