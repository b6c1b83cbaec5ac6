// SPDX-License-Identifier: Apache-2.0
#include "draft/Acceptance.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

using namespace taper;

TEST_CASE("every kind of guess has a place of its own") {
  std::set<int> places;
  for (const auto source : {DraftSource::kSelf, DraftSource::kPrompt, DraftSource::kRun,
                            DraftSource::kModel, DraftSource::kJournal})
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
  CHECK(a.of(one) == RightOf{8, 11});
  CHECK(a.of(other) == RightOf{0, 1});
  for (int i = 0; i < 20000; ++i) a.count(one, true);
  a.fade();
  const auto [right, all] = a.of(one);
  CHECK(all <= 4096);
  CHECK(all > 1024);
  CHECK(right <= all);
  CHECK(right * 1000 > all * 995);
  CHECK(a.of(other) == RightOf{0, 1});
}

TEST_CASE("a source is judged by all of its kinds, and a draft model by its log-probs") {
  Acceptance a;
  a.count({DraftSource::kRun, 1, Evidence::kNear}, true);
  for (const double p : {0.0, 0.29, 0.31, 0.9, 0.99, 1.0})
    a.count(GuessKind::of_model(static_cast<float>(std::log(p))), p > 0.5);
  CHECK(a.of(DraftSource::kModel) == RightOf{3, 6});
  CHECK(a.of(DraftSource::kRun) == RightOf{1, 1});
  CHECK(a.of(DraftSource::kSelf) == RightOf{});
  CHECK(a.of(GuessKind::of_model(-2.0f)) == RightOf{0, 2});
  CHECK(a.of(GuessKind::of_model(0.0f)) == RightOf{2, 2});
  CHECK(estimate({}) == kRatioOne / 2);
  CHECK(estimate({98, 98}) == kRatioOne * 99 / 100);
}
