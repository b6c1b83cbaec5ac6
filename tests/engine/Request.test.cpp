// SPDX-License-Identifier: Apache-2.0
#include "engine/Request.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <vector>

#include "base/Error.hpp"

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

TEST_CASE("a part of a request has the ids and the pinned ends of its samples") {
  Request request{{7, 10}, 5, {1, 2}, 40};
  CHECK(request.part(1, 2).pinned.empty());
  request.pinned = {1, 2, 3, 4, 5};
  const Request part = request.part(2, 2);
  CHECK(part.first == ResponseId{7, 12});
  CHECK(part.samples == 2);
  CHECK(part.prompt == request.prompt);
  CHECK(part.max_new_tokens == 40);
  CHECK(part.pinned == std::vector<std::int32_t>{3, 4});
  request.pinned.pop_back();
  CHECK_THROWS_AS(request.part(0, 5), Error);
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
