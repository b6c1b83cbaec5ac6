// SPDX-License-Identifier: Apache-2.0
#include "rounds/RoundChoice.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <span>
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

void learn(RoundChoice& choice, LengthLaw law, int period) {
  choice.add(draw_lengths(law, 5, period, kPrompts * kSamples, kLimit));
  choice.end_period(kSamples);
}

// After some generations with lengths of a law.
std::unique_ptr<RoundChoice> informed(const LatencyProfile& profile, LengthLaw law) {
  auto choice = std::make_unique<RoundChoice>(profile, one_layout(), kLimit);
  for (int i = 0; i < 6; ++i) learn(*choice, law, i);
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

TEST_CASE("what is kept counts when its period ends, also after a resume with another limit") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  RoundChoice whole(profile, one_layout(), kLimit), parts(profile, one_layout(), kLimit);
  const auto lengths =
      draw_lengths(LengthLaw::kHeavyTail, 5, 0, 2 * kPrompts * kSamples, kLimit / 2);
  whole.add(lengths);
  const auto half = std::span(lengths).first(lengths.size() / 2);
  parts.add(half);
  CHECK(parts.choose(plain_round(), 1.5) == 1.0);  // nothing is known yet
  RoundChoice other(profile, one_layout(), 2 * kLimit);
  other.load(parts.save());
  other.add(std::span(lengths).subspan(half.size()));
  whole.end_period(kSamples);
  other.end_period(kSamples);
  CHECK(other.price(plain_round(), 1.0) > 0);
  RoundChoice same(profile, one_layout(), kLimit);
  same.load(other.save());
  CHECK(same.price(plain_round(), 1.5) == whole.price(plain_round(), 1.5));
}

TEST_CASE("with several layouts a round takes the time of the fastest") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const auto price = [&](const std::vector<Layout>& layouts) {
    RoundChoice choice(profile, layouts, kLimit);
    learn(choice, LengthLaw::kStraggler, 0);
    return choice.price(plain_round(), 1.0);
  };
  const Layout two = Layout::uniform(2, DivisorChain::of(2)), one = one_layout().front();
  CHECK(price({one, two}) <= std::min(price({one}), price({two})));
  CHECK(price({one}) != price({two}));
}
