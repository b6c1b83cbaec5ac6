// SPDX-License-Identifier: Apache-2.0
#include "rollout/DraftPace.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

// A made-up machine and drafter: a step takes `step` ns, each more row `row`, looking up guesses
// `look`; of the guesses that reach the threshold `right` of 1024 become tokens, `promised` times
// as many are expected, and they come so many at a time. With `round`, they come from a model that
// takes so long, and at first `reading` for each step that it did not see.
struct Machine {
  double step = 1000000, row = 100000, look = 0, drafts_per_sequence = 3, right = 700;
  double round = 0, reading = 0;
  double promised = 1;
  int at_a_time = 1;
  double news = 0;  // reading texts in the first step with looks after one without
  int spread = 1;   // the number of sequences goes up and down by less than this

  // Runs so many steps; the share of them with drafts and with rounds, and tokens per ns beside
  // those without.
  struct Outcome {
    double with = 0, rounds = 0, gain = 0;
    DraftLimits last;
  };
  Outcome run(DraftPace& pace, int least, int steps) const {
    double ns = 0, plain_ns = 0, tokens = 0, carried = 0;
    int unread = 1;
    bool looked = false;
    Outcome out;
    DraftLimits limits = DraftLimits::nothing();
    for (int i = 0; i < steps; ++i) {
      const int sequences = least + i % spread;
      DecodeStep s{limits, sequences};
      double time = step + row * (sequences - least);
      plain_ns += time;
      if (limits.threshold < DraftLimits::kNothing) {
        s.reading_ns = static_cast<std::int64_t>(looked ? 0 : news);
        time += look + static_cast<double>(s.reading_ns);
        s.look_ns = static_cast<std::int64_t>(look);
        const double adds = drafts_per_sequence * sequences * right / 1024;
        bool guesses = round == 0;
        if (round > 0 && limits.round < DraftLimits::kNoRound &&
            adds * kRatioOne >= limits.round * sequences) {
          guesses = true;
          s.model.rounds = unread == 0 || reading == 0 ? 1 : 0;
          if (s.model.rounds > 0) s.model.ns = static_cast<std::int64_t>(round);
          s.model.reading_ns = static_cast<std::int64_t>(reading * unread);
          time += static_cast<double>(s.model.all_ns());
          unread = -1;
          out.rounds += 1.0 / steps;
        }
        if (guesses && promised * right >= limits.threshold) {
          s.drafted = static_cast<int>(drafts_per_sequence * sequences);
          carried += s.drafted * right / 1024;
          s.expected = promised * s.drafted * right / 1024;
          if (carried >= at_a_time) s.accepted = static_cast<int>(carried);
          carried -= s.accepted;
        }
        time += row * s.drafted;
        out.with += 1.0 / steps;
        out.last = limits;
      }
      looked = limits.threshold < DraftLimits::kNothing;
      ++unread;
      s.ns = static_cast<std::int64_t>(time);
      pace.measure(s);
      ns += time;
      tokens += sequences + s.accepted;
      limits = pace.limits(least + (i + 1) % spread);
    }
    out.gain = tokens / ns * plain_ns / (steps * (least + (spread - 1) / 2.0));
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
    CHECK(out.with < 0.25);
  }
}

TEST_CASE("drafts that give less than is expected of them are found out") {
  Machine machine;
  machine.right = 140;
  machine.promised = 5;
  machine.look = 20000;
  machine.row = 200000;
  DraftPace pace;
  const auto out = machine.run(pace, 1, 20000);
  CHECK(out.with > 0);
  CHECK(out.with < 0.2);
  CHECK(out.gain > 0.985);
}

TEST_CASE("drafts that give nothing for long, and then all at once, are made") {
  Machine machine;
  machine.at_a_time = 40;
  machine.drafts_per_sequence = 1;
  machine.look = 1000;
  machine.row = 20000;
  DraftPace pace;
  const auto out = machine.run(pace, 1, 2000);
  CHECK(out.with > 0.95);
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
  CHECK(bad.run(pace, 2, 3000).with < 0.2);
  CHECK(good.run(pace, 2, 4000).with > 0.5);
  CHECK(bad.run(pace, 40, 3000).with < 0.1);
  CHECK(good.run(pace, 2, 1000).with > 0.9);
  const int known = pace.limits(2).threshold;
  pace.restart(0);  // the same groups
  CHECK(pace.limits(2).threshold == known);
  pace.restart(2);
  // A step without drafts comes first, then what is probable.
  CHECK(pace.limits(2).threshold == DraftLimits::kNothing);
  pace.measure({.limits = DraftLimits::nothing(), .sequences = 2, .ns = 1000000});
  CHECK(pace.limits(2).threshold == 640);
}

TEST_CASE("a look that is slow by chance does not end drafts for long") {
  DraftPace pace;
  Machine machine;
  CHECK(machine.run(pace, 1, 1000).with > 0.9);
  const DecodeStep slow{
      .limits = pace.limits(1), .sequences = 1, .ns = 1000000000, .look_ns = 999000000};
  pace.measure(slow);
  CHECK(machine.run(pace, 1, 500).with < 0.1);
  CHECK(machine.run(pace, 1, 2000).with > 0.6);
}

TEST_CASE("whether looks pay is found out for each kind of generation") {
  constexpr GenerationKind kNew{}, kKnown{.knows_prompts = true}, kGreedy{.is_greedy = true};
  DraftPace pace;
  Machine good, bad;
  bad.right = 20;
  bad.look = 50000;
  for (const GenerationKind kind : {kNew, kKnown, kGreedy}) {
    pace.begin(1, kind);
    // Looked for at once: what others have brought says nothing. (The first step has no looks.)
    CHECK(bad.run(pace, 1, 2).with > 0);
    CHECK(bad.run(pace, 1, 3000).with < 0.3);
  }
  for (int g = 0; g < 3; ++g) {
    pace.begin(1, kKnown);
    CHECK(good.run(pace, 1, 3000).with > 0.5);
    pace.begin(1, kNew);
    CHECK(bad.run(pace, 1, 3000).with < 0.3);
  }
  pace.begin(1, kKnown);
  CHECK(good.run(pace, 1, 100).with > 0.9);
}

TEST_CASE("short generations in which drafts do not pay seldom try them") {
  DraftPace pace;
  Machine bad;
  bad.right = 20;
  bad.look = 50000;
  double with = 0;
  constexpr int kGenerations = 100;
  for (int g = 0; g < kGenerations; ++g) {
    pace.begin(1, {.knows_prompts = true});
    with += bad.run(pace, 1, 100).with / kGenerations;
  }
  CHECK(with > 0);
  CHECK(with < 0.1);
}

TEST_CASE("where looks pay but a little, they are made") {
  for (const double look : {1000.0, 100000.0}) {
    DraftPace pace;
    Machine machine;
    machine.look = look;
    machine.drafts_per_sequence = 1;
    machine.row = 500000;
    // 0.68 tokens for half a step, and looks
    const auto out = machine.run(pace, 1, 4000);
    CHECK(out.with > 0.9);
    CHECK(out.gain > 0.99 * 1.68 / (1.5 + look / machine.step));
  }
}

TEST_CASE("a round of a draft model has to add what its time would give otherwise") {
  DraftPace pace;
  Machine machine;
  for (const double round : {0.0, 50000.0, 400000.0}) {
    machine.round = round;
    const auto out = machine.run(pace, 1, 3000);
    if (round > 0) CHECK(out.rounds > 0.97);
    const DraftLimits limits = out.last;
    // D G / T tokens, with the tokens and the time of steps with rounds.
    const double price = round * 3.05 / (1300000 + round);
    CHECK(limits.round >= 0.9 * price * kRatioOne - 1);
    CHECK(limits.round <= 1.15 * price * kRatioOne + 1);
  }
  machine.round = 1e9;
  CHECK(machine.run(pace, 1, 3000).last.round == DraftLimits::kNoRound);
}

TEST_CASE("many sequences share the price of a row, and that of a round") {
  DraftPace pace;
  Machine machine;
  machine.row = machine.step / 2000;
  machine.round = machine.step / 2;
  for (const int sequences : {64, 256}) {
    const auto out = machine.run(pace, sequences, 3000);
    CHECK(out.rounds > 0.97);
    // 1 + 3 x 0.68 tokens for a step and a half, and rows.
    CHECK(out.gain > 0.97 * 3.05 / (1.5 + 3 * sequences / 2000.0));
  }
}

TEST_CASE("a plain step that was slow by chance leaves prices above zero") {
  DraftPace pace;
  Machine machine;
  machine.row = machine.step / 64;
  pace.measure({.limits = DraftLimits::nothing(), .sequences = 40, .ns = 10000000});
  machine.spread = 24;
  const auto out = machine.run(pace, 33, 3000);
  CHECK(out.with > 0.9);
  CHECK(out.gain > 1.08);
}

TEST_CASE("rounds that are too dear are tried again, seldom, and made once they are cheap") {
  DraftPace pace;
  Machine machine;
  machine.round = 1e7;
  const auto dear = machine.run(pace, 1, 20000);
  CHECK(dear.rounds > 0);
  CHECK(dear.rounds < 0.002);
  CHECK(dear.gain > 0.99);
  machine.round = 50000;
  CHECK(machine.run(pace, 1, 20000).rounds > 0.5);
  machine.right = 0;
  CHECK(machine.run(pace, 1, 20000).gain > 0.98);
}

TEST_CASE("generations too short for what a model reads at first go without it") {
  DraftPace pace;
  Machine machine;
  machine.round = 50000;
  machine.reading = 4e7;
  double seconds = 0;
  constexpr int kGenerations = 100;
  for (int g = 0; g < kGenerations; ++g) {
    pace.begin(1);
    const auto out = machine.run(pace, 1, 25);
    if (g >= kGenerations / 2) seconds += 2 / out.gain / kGenerations;
  }
  CHECK(seconds < 1.1);
  // Longer ones with less to read earn it again.
  machine.reading = 1e6;
  double rounds = 0;
  for (int g = 0; g < kGenerations; ++g) {
    pace.begin(1);
    rounds += machine.run(pace, 1, 400).rounds / kGenerations;
  }
  CHECK(rounds > 0.5);
}

TEST_CASE("what a model has to read at first is not the price of its rounds") {
  DraftPace pace;
  Machine machine;
  machine.round = 50000;
  machine.reading = 3e7;
  const auto out = machine.run(pace, 2, 3000);
  CHECK(out.rounds > 0.9);
  CHECK(out.last.round < 0.2 * kRatioOne);
}

TEST_CASE("numbers of sequences that go up and down leave the price of a row as it is") {
  DraftPace pace;
  Machine machine;
  machine.spread = 4;
  machine.drafts_per_sequence = 0.25;
  const auto out = machine.run(pace, 4, 4000);
  // c G / T of 5.5 sequences, of which a quarter has a guess
  const double rate = (5.5 + 1.1 * 700 / 1024) / (1150000 + 1.1 * 100000);
  CHECK(out.last.threshold > 0.8 * 100000 * rate * 1024);
  CHECK(out.last.threshold < 1.25 * 100000 * rate * 1024);
}

TEST_CASE("limits fit into their bits") {
  for (const DraftLimits limits :
       {DraftLimits{}, DraftLimits{1, 2}, DraftLimits{1022, 7}, DraftLimits::nothing()}) {
    CHECK(limits.pack() < std::uint64_t{1} << DraftLimits::kBits);
    CHECK(DraftLimits::unpack(limits.pack()).threshold == limits.threshold);
    CHECK(DraftLimits::unpack(limits.pack()).round == limits.round);
  }
}

TEST_CASE("what is read first is part of a trial, and of nothing else") {
  constexpr std::int64_t kReading = 100000000;  // of 100 steps
  DraftPace pace;
  Machine machine;
  CHECK(machine.run(pace, 1, 1000).with > 0.9);
  // In a generation in which drafts pay.
  const DecodeStep dear{
      .limits = pace.limits(1), .sequences = 1, .ns = 1000000 + kReading, .reading_ns = kReading};
  pace.measure(dear);
  CHECK(machine.run(pace, 1, 500).with > 0.9);
  // Where drafts do not pay, pauses are the longer.
  Machine bad;
  bad.right = 20;
  bad.look = 20000;
  DraftPace cheap, expensive;
  const double with = bad.run(cheap, 1, 50000).with;
  bad.news = 500000;
  const auto out = bad.run(expensive, 1, 50000);
  CHECK(out.with > 0);
  CHECK(out.with < 0.8 * with);
  CHECK(out.gain > 0.995);
}
