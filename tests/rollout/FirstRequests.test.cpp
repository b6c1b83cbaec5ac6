// SPDX-License-Identifier: Apache-2.0
#include "rollout/FirstRequests.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace taper;

TEST_CASE("what each replica begins with") {
  const DivisorChain chain({1, 2, 4});
  std::vector<Request> requests(3);
  for (Request& r : requests) {
    r.first.prompt = &r - requests.data();
    r.samples = 5;
    r.first.sample = 10;
    r.prompt.assign(4, 0);
    r.max_new_tokens = 1000;
    r.pinned = {1, 2, 3, 4, 5};
  }
  const Layout layout = parse_layout("2+1+1", chain);
  std::vector<std::vector<int>> seen(requests.size());
  std::vector<std::size_t> counts;
  for (int replica = 0; replica < layout.replicas(); ++replica) {
    std::size_t count = 0;
    for (const Request& part : first_requests(requests, layout, replica)) {
      REQUIRE(part.pinned.size() == static_cast<std::size_t>(part.samples));
      const auto request = static_cast<std::size_t>(part.first.prompt);
      for (int i = 0; i < part.samples; ++i) {
        CHECK(part.pinned[i] == part.first.sample + i - 9);
        seen[request].push_back(part.first.sample + i);
        ++count;
      }
    }
    counts.push_back(count);
  }
  for (auto& samples : seen) {
    std::sort(samples.begin(), samples.end());
    CHECK(samples == std::vector<int>{10, 11, 12, 13, 14});
  }
  CHECK(counts == std::vector<std::size_t>{7, 4, 4});
}
