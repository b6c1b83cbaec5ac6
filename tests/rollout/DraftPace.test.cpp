// SPDX-License-Identifier: Apache-2.0
#include "rollout/DraftPace.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

// A made-up machine and drafter: a step takes `step` ns, each more row `row`, looking up guesses
// `look`; of the guesses that reach the threshold `right` of 1024 become tokens.
struct Machine {
  double step = 1000000, row = 100000, look = 0, round = 0, drafts_per_sequence = 3, right = 700;

  // Runs so many steps; the share of them with drafts, and tokens per ns beside those without.
  struct Outcome {
    double with = 0, gain = 0;
    DraftLimits last;
  };
  Outcome run(DraftPace& pace, int sequences, int steps) const {
    double ns = 0, tokens = 0, carried = 0;
    Outcome out;
    DraftLimits limits = DraftLimits::nothing();
    for (int i = 0; i < steps; ++i) {
      DecodeStep s{limits, sequences, 0, 0, 0};
      double time = step;
      if (limits.threshold < DraftLimits::kNothing) {
        time += look + round;
        if (round > 0) s.model = {1, static_cast<std::int64_t>(round)};
        if (right >= limits.threshold) {
          s.drafted = static_cast<int>(drafts_per_sequence * sequences);
          carried += s.drafted * right / 1024;
          s.accepted = static_cast<int>(carried);
          carried -= s.accepted;
        }
        time += row * s.drafted;
        out.with += 1.0 / steps;
        out.last = limits;
      }
      s.ns = static_cast<std::int64_t>(time);
      pace.measure(s);
      ns += time;
      tokens += sequences + s.accepted;
      limits = pace.limits(sequences);
    }
    out.gain = tokens / ns * step / sequences;
    return out;
  }
};

}  // namespace

TEST_CASE("drafts that pay are made") {
  DraftPace pace;
  Machine machine;
  for (const int sequences : {1, 3}) {
    machine.row = 100000.0 / sequences;
    const auto out = machine.run(pace, sequences, 4000);
    CHECK(out.with > 0.97);
    // 1 + 3 x 0.68 tokens for 1.3 steps.
    CHECK(out.gain > 0.98 * 3.05 / 1.3);
  }
}

TEST_CASE("drafts that do not pay cost next to nothing") {
  for (const double right : {0.0, 60.0, 300.0, 700.0}) {
    Machine machine;
    machine.right = right;
    machine.look = 20000;
    machine.row = machine.step;
    DraftPace pace;
    const auto out = machine.run(pace, 1, 20000);
    INFO("right " << right << ", with drafts " << out.with);
    CHECK(out.gain > 0.995);
    CHECK(out.with < 0.02);
  }
}

TEST_CASE("the threshold is what a row costs beside what a token does") {
  DraftPace pace;
  Machine machine;
  const auto out = machine.run(pace, 1, 3000);
  // c G / T = 0.1 x 3.05 / 1.3
  CHECK(out.last.threshold > 1024 * 0.2);
  CHECK(out.last.threshold < 1024 * 0.26);
}

TEST_CASE("what pays is found out again when it changes, and for each size of batch") {
  DraftPace pace;
  Machine good, bad;
  bad.right = 20;
  bad.look = 50000;
  CHECK(good.run(pace, 2, 3000).with > 0.9);
  CHECK(bad.run(pace, 2, 3000).with < 0.1);
  CHECK(good.run(pace, 2, 4000).with > 0.5);
  CHECK(bad.run(pace, 40, 3000).with < 0.1);
  CHECK(good.run(pace, 2, 1000).with > 0.9);
  const int known = pace.limits(2).threshold;
  pace.restart(0);  // the same groups
  CHECK(pace.limits(2).threshold == known);
  pace.restart(2);
  CHECK(pace.limits(2).threshold == 512);  // nothing is known
}

TEST_CASE("a round of a draft model has to add what its time would give otherwise") {
  DraftPace pace;
  Machine machine;
  for (const double round : {0.0, 50000.0, 400000.0}) {
    machine.round = round;
    const DraftLimits limits = machine.run(pace, 1, 3000).last;
    // D G / T tokens, with the tokens and the time of steps with rounds.
    const double price = round * 3.05 / (1300000 + round);
    CHECK(limits.round >= 0.9 * price * DraftLimits::kRoundUnit - 1);
    CHECK(limits.round <= 1.15 * price * DraftLimits::kRoundUnit + 1);
  }
  machine.round = 1e9;
  CHECK(machine.run(pace, 1, 3000).last.round == DraftLimits::kNoRound);
}

TEST_CASE("limits fit into their bits") {
  for (const DraftLimits limits :
       {DraftLimits{}, DraftLimits{1, 2}, DraftLimits{1022, 7}, DraftLimits::nothing()}) {
    CHECK(limits.pack() < std::uint64_t{1} << DraftLimits::kBits);
    CHECK(DraftLimits::unpack(limits.pack()).threshold == limits.threshold);
    CHECK(DraftLimits::unpack(limits.pack()).round == limits.round);
  }
}
