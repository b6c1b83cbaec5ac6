// SPDX-License-Identifier: Apache-2.0
#include "rl/Batch.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

// Two groups of three, of which the second sample of the first and the whole second group have no
// score.
GroupSelection selection() {
  GroupSelection s;
  for (int i = 0; i < 6; ++i) {
    Sample sample;
    sample.ordinal = i / 3;
    sample.sample = i % 3;
    sample.response = {i, i};
    sample.dropped = i == 1 || i >= 3;
    s.samples.push_back(sample);
  }
  s.counts.filled = 2;
  return s;
}

}  // namespace

TEST_CASE("responses without a score are kept apart from those that are trained") {
  Batch batch(selection());
  REQUIRE(batch.samples.size() == 2);
  CHECK(batch.samples[0].sample == 0);
  CHECK(batch.samples[1].sample == 2);
  CHECK(batch.unscored.size() == 4);
  CHECK(batch.size() == 6);
  CHECK(batch.groups.filled == 2);
}

TEST_CASE("the record has all responses in their order, with what was set in between") {
  Batch batch(selection());
  batch.samples[1].reward = 0.5f;
  const auto all = batch.take_all();
  REQUIRE(all.size() == 6);
  for (int i = 0; i < 6; ++i) {
    CHECK(all[i].ordinal * 3 + all[i].sample == i);
    CHECK(all[i].response == std::vector<std::int32_t>{i, i});
  }
  CHECK(all[2].reward == 0.5f);
  CHECK(batch.size() == 0);
}
