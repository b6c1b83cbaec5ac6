// SPDX-License-Identifier: Apache-2.0
#include "rl/DynamicSampling.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

// Groups of two samples with these scores, by ordinal.
std::vector<SampleSummary> groups(const std::vector<std::pair<float, float>>& scores) {
  std::vector<SampleSummary> samples;
  for (std::size_t g = 0; g < scores.size(); ++g)
    for (const int k : {0, 1}) {
      SampleSummary s;
      s.id.prompt = static_cast<std::int64_t>(g);
      s.id.sample = k;
      s.score = s.unshaped_score = k == 0 ? scores[g].first : scores[g].second;
      samples.push_back(s);
    }
  return samples;
}

// Of the groups that are taken, which must be whole.
std::vector<std::int64_t> ordinals(const std::vector<SampleSummary>& samples,
                                   const GroupSelection& selection) {
  REQUIRE(selection.taken.size() == samples.size());
  std::vector<std::int64_t> list;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].id.sample == 0 && selection.taken[i]) list.push_back(samples[i].id.prompt);
    CHECK(selection.taken[i] == selection.taken[i - samples[i].id.sample]);
  }
  return list;
}

}  // namespace

TEST_CASE("groups whose scores differ are kept in their order, and the surplus is cut") {
  const auto all = groups({{1, 1}, {0, 1}, {0, 0}, {1, 0}, {0, 1}});
  CHECK(count_teaching_groups(all) == 3);
  const GroupSelection two = select_groups(all, 2);
  CHECK(ordinals(all, two) == std::vector<std::int64_t>{1, 3});
  CHECK(two.counts.surplus == 1);
  CHECK(two.counts.dropped == 2);
  CHECK(two.counts.filled == 0);
}

TEST_CASE("too few groups are filled up with the first of the others, by ordinal") {
  const auto all = groups({{1, 1}, {0, 1}, {0, 0}, {1, 0}, {1, 1}});
  const GroupSelection four = select_groups(all, 4);
  CHECK(ordinals(all, four) == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(four.counts.filled == 2);
  CHECK(four.counts.dropped == 1);
  CHECK(four.counts.surplus == 0);
}

TEST_CASE("a group of one passes, nothing gives nothing") {
  auto one = groups({{1, 1}});
  one.pop_back();
  CHECK(count_teaching_groups(one) == 1);
  CHECK(select_groups({}, 3).taken.empty());
}

TEST_CASE("groups whose scores differ by shaping alone do not teach") {
  auto all = groups({{1, 1}, {0, 1}, {0, 0}});
  for (SampleSummary& s : all) s.score -= s.id.sample == 0 ? 0.25f : 0.0f;  // of the length, say
  CHECK(count_teaching_groups(all) == 1);
  CHECK(ordinals(all, select_groups(all, 1)) == std::vector<std::int64_t>{1});
  for (SampleSummary& s : all) s.score = 0.0f;  // shaping can also hide a difference
  CHECK(count_teaching_groups(all) == 1);
}
