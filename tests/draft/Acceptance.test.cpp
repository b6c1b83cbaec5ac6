// SPDX-License-Identifier: Apache-2.0
#include "draft/Acceptance.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

using namespace taper;

TEST_CASE("every kind of guess has a place of its own") {
  std::set<int> places;
  for (const auto source : {DraftSource::kSelf, DraftSource::kPrompt, DraftSource::kRun})
    for (int level = 0; level < GuessKind::kLevels; ++level)
      for (int e = 0; e < kEvidences; ++e)
        places.insert(GuessKind{source, level, static_cast<Evidence>(e)}.index());
  CHECK(static_cast<int>(places.size()) == GuessKind::kKinds);
  CHECK(*places.begin() == 0);
  CHECK(*places.rbegin() == GuessKind::kKinds - 1);
}

TEST_CASE("guesses are counted by kind, summed and faded") {
  const GuessKind one{DraftSource::kPrompt, 2, Evidence::kNear},
      other{DraftSource::kRun, 0, Evidence::kNewest};
  Acceptance a, b;
  for (int i = 0; i < 10; ++i) a.count(one, i < 7);
  b.count(one, true);
  b.count(other, false);
  a.add(b);
  CHECK(a.of(one) == std::array<std::int64_t, 2>{8, 11});
  CHECK(a.of(other) == std::array<std::int64_t, 2>{0, 1});
  for (int i = 0; i < 20000; ++i) a.count(one, true);
  a.fade();
  const auto [right, all] = a.of(one);
  CHECK(all <= 4096);
  CHECK(all > 1024);
  CHECK(right <= all);
  CHECK(right * 1000 > all * 995);
  CHECK(a.of(other) == std::array<std::int64_t, 2>{0, 1});
}
