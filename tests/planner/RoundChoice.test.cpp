// SPDX-License-Identifier: Apache-2.0
#include "planner/RoundChoice.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <vector>

#include "simulate/LengthLaw.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

constexpr int kPrompts = 16, kSamples = 8, kLimit = 1024;

std::vector<Layout> one_layout() {
  return {Layout::uniform(1, DivisorChain::of(2))};
}

Workload plain_round() {
  Workload work;
  work.samples = kSamples;
  work.sequences = kPrompts * kSamples;
  work.prompt_tokens = std::int64_t{32} * work.sequences;
  work.max_new_tokens = kLimit;
  return work;
}

std::vector<Outcome> outcomes(const std::vector<int>& lengths) {
  std::vector<Outcome> list;
  for (const int length : lengths) list.push_back({std::ssize(list), 32, length});
  return list;
}

// After some generations with lengths of a law.
std::unique_ptr<RoundChoice> informed(const LatencyProfile& profile, LengthLaw law) {
  auto choice = std::make_unique<RoundChoice>(profile, one_layout(), kLimit);
  for (int i = 0; i < 6; ++i)
    choice->learn(outcomes(draw_lengths(law, 5, i, kPrompts * kSamples, kLimit)), kSamples);
  return choice;
}

}  // namespace

TEST_CASE("nothing is put off while nothing is known, or where nothing is gained") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  RoundChoice unknown(profile, one_layout(), kLimit);
  CHECK(unknown.choose(plain_round(), 1.25) == 1.0);
  for (const LengthLaw law : {LengthLaw::kNarrow, LengthLaw::kTruncated})
    CHECK(informed(profile, law)->choose(plain_round(), 1.0) == 1.0);
}

TEST_CASE("stragglers are put off where a step costs the same for few and for many") {
  // A step takes as long for one sequence as for sixteen.
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const auto informed_choice = informed(profile, LengthLaw::kStraggler);
  RoundChoice& choice = *informed_choice;
  const double chosen = choice.choose(plain_round(), 1.0);
  CHECK(chosen > 1.0);
  CHECK(choice.price(plain_round(), chosen) < choice.price(plain_round(), 1.0));
  CHECK(choice.choose(plain_round(), chosen) == chosen);  // it stays
}

TEST_CASE("a choice that goes on from its bytes chooses alike") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const auto choice = informed(profile, LengthLaw::kHeavyTail);
  RoundChoice other(profile, one_layout(), kLimit);
  other.load(choice->save());
  for (const double c : RoundChoice::kChoices)
    CHECK(other.price(plain_round(), c) == choice->price(plain_round(), c));
}

TEST_CASE("with several layouts a round takes the time of the fastest") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const auto price = [&](const std::vector<Layout>& layouts) {
    RoundChoice choice(profile, layouts, kLimit);
    choice.learn(outcomes(draw_lengths(LengthLaw::kStraggler, 5, 0, kPrompts * kSamples, kLimit)),
                 kSamples);
    return choice.price(plain_round(), 1.0);
  };
  const Layout two = Layout::uniform(2, DivisorChain::of(2)), one = one_layout().front();
  CHECK(price({one, two}) <= std::min(price({one}), price({two})));
  CHECK(price({one}) != price({two}));
}
