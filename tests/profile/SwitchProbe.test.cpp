// SPDX-License-Identifier: Apache-2.0
#include "profile/SwitchProbe.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace taper;
using Catch::Approx;

TEST_CASE("a line through times of transfers gives latency and rate back") {
  std::vector<TransferSample> samples;
  for (std::int64_t bytes = 1 << 15; bytes <= 1 << 23; bytes *= 4)
    samples.push_back({bytes, 2e-5 + static_cast<double>(bytes) / 5e8});
  const TransferLine line = fit_transfer(samples);
  CHECK(line.latency == Approx(2e-5));
  CHECK(line.bytes_per_second == Approx(5e8));
  CHECK(line.seconds(1e6) == Approx(2e-5 + 2e-3));
}

TEST_CASE("one bad time does not bend the line, and it never falls") {
  std::vector<TransferSample> samples{
      {1000, 1.1e-5}, {4000, 1.4e-5}, {16000, 9e-3}, {64000, 7.4e-5}, {256000, 2.66e-4}};
  const TransferLine line = fit_transfer(samples);
  CHECK(line.latency == Approx(1e-5));
  CHECK(line.bytes_per_second == Approx(1e9));
  const TransferLine falling = fit_transfer({{1000, 2e-5}, {2000, 1e-5}});
  CHECK(falling.bytes_per_second > 0);
  CHECK(falling.latency <= 2e-5);
  const TransferLine steep = fit_transfer({{1000, 1e-6}, {2000, 1.0}});  // not below no time
  CHECK(steep.latency == 0);
}
