// SPDX-License-Identifier: Apache-2.0
#include "rl/Batch.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

// Two groups of three, of which the second sample of the first and the whole second group have no
// score.
SampleSet six_samples() {
  std::vector<Sample> samples;
  for (int i = 0; i < 6; ++i) {
    Sample s;
    s.id.prompt = i / 3;
    s.id.sample = i % 3;
    s.response = {i, i};
    s.unscored = i == 1 || i >= 3;
    samples.push_back(s);
  }
  return SampleSet(samples);
}

}  // namespace

TEST_CASE("responses without a score are kept apart from those that are trained") {
  GroupCounts counts;
  counts.filled = 2;
  const Batch batch(six_samples(), counts);
  REQUIRE(batch.samples.size() == 2);
  CHECK(batch.samples.here()[0].id.sample == 0);
  CHECK(batch.samples.here()[1].id.sample == 2);
  CHECK(batch.unscored.size() == 4);
  CHECK(batch.size() == 6);
  CHECK(batch.groups.filled == 2);
}

TEST_CASE("the figures are of all responses in their order, with what was set in between") {
  Batch batch(six_samples(), {});
  batch.samples.here()[1].reward = 0.5f;
  batch.samples.summarize();
  const auto all = batch.summaries();
  REQUIRE(all.size() == 6);
  for (int i = 0; i < 6; ++i) {
    CHECK(all[i].id.prompt * 3 + all[i].id.sample == i);
    CHECK(all[i].response_tokens == 2);
  }
  CHECK(all[2].reward == 0.5f);
}
