// SPDX-License-Identifier: Apache-2.0
#include "rollout/DraftPace.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

// A made-up machine and drafter: a step takes `step` ns, each more row `row`, looking up guesses
// `look`; of the guesses that reach the threshold `right` of 1024 become tokens.
struct Machine {
  double step = 1000000, row = 100000, look = 0, drafts_per_sequence = 3, right = 700;

  // Runs so many steps; the share of them with drafts, and tokens per ns beside those without.
  struct Outcome {
    double with = 0, gain = 0;
    int last_threshold = 0;
  };
  Outcome run(DraftPace& pace, int sequences, int steps) const {
    double ns = 0, tokens = 0, carried = 0;
    Outcome out;
    int threshold = DraftPace::kOff;
    for (int i = 0; i < steps; ++i) {
      DecodeStep s{threshold, sequences, 0, 0, 0};
      double time = step;
      if (threshold < DraftPace::kOff) {
        time += look;
        if (right >= threshold) {
          s.drafted = static_cast<int>(drafts_per_sequence * sequences);
          carried += s.drafted * right / 1024;
          s.accepted = static_cast<int>(carried);
          carried -= s.accepted;
        }
        time += row * s.drafted;
        out.with += 1.0 / steps;
        out.last_threshold = threshold;
      }
      s.ns = static_cast<std::int64_t>(time);
      pace.measure(s);
      ns += time;
      tokens += sequences + s.accepted;
      threshold = pace.threshold(sequences);
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
  CHECK(out.last_threshold > 1024 * 0.2);
  CHECK(out.last_threshold < 1024 * 0.26);
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
  pace.restart();
  CHECK(pace.threshold(2) == 512);  // nothing is known
}
