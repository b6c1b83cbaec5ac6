// SPDX-License-Identifier: Apache-2.0
#include "rollout/Requests.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace taper;

namespace {

std::vector<Request> some_requests(int count, int samples) {
  std::vector<Request> requests(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    requests[i].first.prompt = 5 + i;
    requests[i].samples = samples;
    requests[i].prompt = {i, 7};
    requests[i].max_new_tokens = 9;
  }
  return requests;
}

}  // namespace

TEST_CASE("requests stay whole where there are enough of them") {
  for (const int replicas : {1, 2, 3}) CHECK(in_parts(some_requests(2, 4), replicas).size() == 2);
  CHECK(in_parts({}, 8).empty());
  CHECK(in_parts(some_requests(1, 1), 8).size() == 1);
}

TEST_CASE("the parts of a request have its samples, each once, and nothing else differs") {
  for (const int replicas : {4, 5, 16, 100}) {
    const auto parts = in_parts(some_requests(2, 7), replicas);
    CHECK(parts.size() > 2);
    CHECK(parts.size() <= 14);
    std::size_t next = 0;
    for (int prompt = 5; prompt < 7; ++prompt)
      for (int sample = 0; sample < 7; ++next) {
        REQUIRE(next < parts.size());
        const Request& part = parts[next];
        CHECK(part.first == ResponseId{prompt, sample});
        CHECK(part.samples >= 1);
        CHECK(part.prompt == std::vector<std::int32_t>{prompt - 5, 7});
        CHECK(part.max_new_tokens == 9);
        sample += part.samples;
        CHECK(sample <= 7);
      }
    CHECK(next == parts.size());
  }
}

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
