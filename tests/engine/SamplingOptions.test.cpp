// SPDX-License-Identifier: Apache-2.0
#include "engine/SamplingOptions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

using namespace taper;

TEST_CASE("sampling cuts the distribution by any of three limits, and by none unless asked to") {
  CHECK(!SamplingOptions().truncates());
  SamplingOptions k, p, m, cold;
  k.top_k = 1;
  p.top_p = 0.99f;
  m.min_p = 0.01f;
  cold.temperature = 0.5f;
  CHECK(k.truncates());
  CHECK(p.truncates());
  CHECK(m.truncates());
  CHECK(!cold.truncates());
}

TEST_CASE("settings that no distribution has are problems") {
  CHECK(SamplingOptions().problems().empty());
  SamplingOptions o;
  o.temperature = 0.0f;  // greedy
  CHECK(o.problems().empty());
  o.temperature = -1.0f;
  CHECK(!o.problems().empty());
  o = {};
  o.temperature = std::numeric_limits<float>::quiet_NaN();
  CHECK(!o.problems().empty());
  o = {};
  o.top_p = 0.0f;
  CHECK(!o.problems().empty());
  o = {};
  o.top_k = -1;
  CHECK(!o.problems().empty());
  o = {};
  o.min_p = 1.5f;
  CHECK(!o.problems().empty());
  o = {};
  o.repetition_penalty = 0.0f;
  CHECK(!o.problems().empty());
}
