// SPDX-License-Identifier: Apache-2.0
#include "engine/Request.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "base/Error.hpp"

using namespace taper;

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
