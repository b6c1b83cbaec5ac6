// SPDX-License-Identifier: Apache-2.0
#include "planner/Planner.hpp"

#include <catch2/catch_test_macros.hpp>
#include <deque>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "simulate/LengthLaw.hpp"
#include "simulate/Simulator.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

LatencyProfile tcp(const std::vector<int>& degrees) {
  return test::synthetic_profile(test::small_model_tcp(), degrees);
}

Workload workload(int sequences, std::int64_t iteration = 0) {
  Workload work;
  work.iteration = iteration;
  work.sequences = sequences;
  work.prompt_tokens = 100 * sequences;
  work.max_new_tokens = 1024;
  return work;
}

ReplayTrace trace(LengthLaw law, std::int64_t iteration, int sequences) {
  ReplayTrace t{workload(sequences, iteration), {}};
  const auto lengths = draw_lengths(law, 7, iteration, sequences, t.work.max_new_tokens);
  for (int i = 0; i < sequences; ++i) t.outcomes.push_back({i, 100, lengths[i], false});
  return t;
}

// Two sequences of very different age on the first of four ranks, all others idle.
Snapshot tail(const Layout& layout) {
  Snapshot s{layout, std::vector<ReplicaSnapshot>(layout.groups().size()), 2'000'000'000, 30, 0};
  ReplicaSnapshot& r = s.replicas.front();
  r.lengths[length_bucket(300)] = 2;
  r.response = 600;
  r.context = 800;
  r.longest = 400;
  return s;
}

std::vector<SequenceState> exact(const Snapshot&) {
  return {{3, 0, 390, 100, 290, 1024}, {8, 0, 410, 100, 310, 1024}};
}

// At the first consultation at which the search for plans is done.
Decision decide(Planner& planner, Snapshot snapshot) {
  while (true) {
    const Decision decision = planner.decide(snapshot);
    if (!decision.prices.empty() || decision.wait_ns > 0) return decision;
    REQUIRE(++snapshot.consultation < 1000);
  }
}

}  // namespace

TEST_CASE("bad options and missing degrees are refused") {
  const DivisorChain chain = DivisorChain::of(4);
  PlannerOptions options;
  CHECK_NOTHROW(Planner(tcp({1, 2}), chain, options));
  options.degrees = {1, 4};
  CHECK_THROWS_AS(Planner(tcp({1, 2}), chain, options), Error);
  CHECK_THROWS_AS(Planner(tcp({8}), chain, PlannerOptions{}), Error);
  options = {};
  options.scenarios = 5;
  CHECK(options.problems().size() == 1);
  CHECK_THROWS_AS(Planner(tcp({1, 2}), chain, options), Error);
  options = {};
  options.consult_ns = 0;
  CHECK(options.problems() ==
        std::vector<std::string>{"the period of consultation must be positive"});
}

TEST_CASE("the initial layout can be fixed, else follows from profile and lengths") {
  const DivisorChain chain = DivisorChain::of(2);
  PlannerOptions options;
  options.initial = "2x1";
  CHECK(Planner(tcp({1, 2}), chain, options).begin(workload(128)) == Layout::uniform(2, chain));
  options.initial = "";
  CHECK(Planner(tcp({1, 2}), chain, options).begin(workload(128)) == Layout::uniform(1, chain));
  // A single sequence is a tail from the start.
  CHECK(Planner(tcp({1, 2}), chain, options).begin(workload(1)) == Layout::uniform(2, chain));
}

TEST_CASE("every rank gets the same answers, bit for bit") {
  const DivisorChain chain = DivisorChain::of(4);
  const SimulatedMachine machine(tcp({1, 2, 4}));
  const PlannerOptions options;
  std::vector<Planner> ranks;
  for (int i = 0; i < 3; ++i) ranks.emplace_back(machine.profile, chain, options);
  int acts = 0;
  for (int iteration = 0; iteration < 3; ++iteration) {
    const ReplayTrace t = trace(LengthLaw::kHeavyTail, iteration, 64);
    for (Planner& p : ranks) CHECK(p.begin(t.work) == ranks[0].begin(t.work));
    // A rank that becomes a leader takes the state over from another one.
    ranks[2].load(ranks[0].save());
    std::deque<LayoutShape> shapes{resolve(Layout::uniform(1, chain), machine.steps)};
    PlayedGeneration run = start_replay(t, shapes.front(), machine.cost);
    for (std::int64_t now = 50'000'000, k = 0; run.alive() > 0; now += 50'000'000) {
      run.advance(now);
      if (run.alive() == 0) break;
      const Snapshot snapshot = run.snapshot(k++);
      const Decision first = ranks[0].decide(snapshot);
      for (std::size_t i = 1; i < ranks.size(); ++i) {
        const Decision other = ranks[i].decide(snapshot);
        REQUIRE(other.hash == first.hash);
        REQUIRE(other.plan == first.plan);
        REQUIRE(other.reason == first.reason);
      }
      acts += first.act;
    }
    for (Planner& p : ranks) p.finish(t.outcomes, run.clock());
    CHECK(ranks[1].save() == ranks[0].save());
    CHECK(ranks[2].save() == ranks[0].save());
  }
  CHECK(acts > 0);
}

TEST_CASE("from every layout to every other") {
  const DivisorChain chain = DivisorChain::of(4);
  for (const int before : {1, 2, 4})
    for (const int after : {1, 2, 4}) {
      if (before == after) continue;
      CAPTURE(before, after);
      // The degree to go to is fast, all others are slow.
      LatencyProfile profile = tcp({1, 2, 4});
      for (StepSample& s : profile.steps)
        if (s.tp != after) s.time_ns *= 20;
      PlannerOptions options;
      options.repack = false;
      Planner planner(profile, chain, options);
      planner.begin(workload(64));
      const Snapshot snapshot = tail(Layout::uniform(before, chain));
      const Decision decision = decide(planner, snapshot);
      CHECK(decision.act);
      CHECK(decision.plan == Plan{Layout::uniform(after, chain)});
      const auto list = exact(snapshot);
      const Confirmation confirmed = planner.confirm(decision.plan, snapshot, list);
      CHECK(confirmed.act);
      REQUIRE(confirmed.moves.size() == list.size());
      for (std::size_t i = 0; i < list.size(); ++i) {
        CHECK(confirmed.moves[i].id == list[i].id);
        CHECK(confirmed.moves[i].from == 0);
        CHECK((after == 4 || confirmed.moves[i].to < 4 / after));
      }
      CHECK(confirmed.cost.kv_bytes > 0);
      // Idle ranks wait for the first one to end its step.
      const StepModel steps(profile);
      auto moves = confirmed.moves;
      const SwitchParts bare = SwitchCost(profile).price(
          snapshot.layout, resolve(decision.plan.layout, steps), list, moves);
      CHECK((confirmed.cost.rendezvous > bare.rendezvous) == (before < 4));
      CHECK(confirmed.cost.total() - confirmed.cost.rendezvous == bare.total() - bare.rendezvous);
      // And back: the planner stays where it is fast.
      planner.switched(decision.plan, confirmed.cost.total());
      CHECK_FALSE(decide(planner, tail(Layout::uniform(after, chain))).act);
    }
}

TEST_CASE("a mode that must not act does not, and says what it would do") {
  const DivisorChain chain = DivisorChain::of(4);
  PlannerOptions options;
  options.mode = PlannerMode::kAdvise;
  Planner advisor(tcp({1, 2, 4}), chain, options);
  advisor.begin(workload(64));
  const Decision advice = decide(advisor, tail(Layout::uniform(1, chain)));
  CHECK_FALSE(advice.act);
  CHECK(advice.pays);
  CHECK(advice.plan.layout != Layout::uniform(1, chain));
  CHECK(advice.reason == "switching pays");
  options.mode = PlannerMode::kStatic;
  Planner fixed(tcp({1, 2, 4}), chain, options);
  fixed.begin(workload(64));
  CHECK(fixed.decide(tail(Layout::uniform(1, chain))).prices.empty());
}

TEST_CASE("a switch that does not fit in the cache is not confirmed") {
  const DivisorChain chain = DivisorChain::of(4);
  Planner planner(tcp({1, 2, 4}), chain, PlannerOptions{});
  Workload work = workload(64);
  work.kv_blocks = {{1, 20}, {2, 20}, {4, 13}};  // the sequences need 7 + 7
  planner.begin(work);
  const Snapshot snapshot = tail(Layout::uniform(1, chain));
  const Confirmation c = planner.confirm({Layout::uniform(4, chain)}, snapshot, exact(snapshot));
  CHECK_FALSE(c.act);
  CHECK(c.reason == "it does not fit in the KV cache");
  CHECK(planner.confirm({Layout::uniform(2, chain)}, snapshot, exact(snapshot)).act);
}

TEST_CASE("what ended before the meeting counts") {
  const DivisorChain chain = DivisorChain::of(4);
  Planner planner(tcp({1, 2, 4}), chain, PlannerOptions{});
  planner.begin(workload(64));
  const Snapshot snapshot = tail(Layout::uniform(1, chain));
  CHECK_FALSE(planner.confirm({Layout::uniform(4, chain)}, snapshot, {}).act);
  // One token before the limit there is nothing left to save.
  const std::vector<SequenceState> last{{3, 0, 1123, 100, 1023, 1024}};
  const Confirmation c = planner.confirm({Layout::uniform(4, chain)}, snapshot, last);
  CHECK_FALSE(c.act);
  CHECK(c.reason == "it no longer pays");
}

TEST_CASE("how far drafts reach is learned, kept, and decides which layout is worth what") {
  const DivisorChain chain = DivisorChain::of(4);
  PlannerOptions options;
  options.initial = "1x4";
  Planner plain(tcp({1, 2, 4}), chain, options), drafting(tcp({1, 2, 4}), chain, options);
  const Layout first = plain.begin(workload(32));
  drafting.begin(workload(32));
  Snapshot snapshot = tail(first);
  const Decision without = decide(plain, snapshot);
  snapshot.replicas.front().drafts.drafted.fill(255);
  snapshot.replicas.front().drafts.accepted.fill(230);
  const Decision with = decide(drafting, snapshot);
  REQUIRE_FALSE(without.prices.empty());
  REQUIRE_FALSE(with.prices.empty());
  // The rest takes less time, in whatever layout.
  CHECK(with.prices.front().rest.mean < without.prices.front().rest.mean * 3 / 4);
  Planner other(tcp({1, 2, 4}), chain, options);
  other.begin(workload(32));
  other.load(drafting.save());
  CHECK(other.save() == drafting.save());
  CHECK(drafting.save().size() > plain.save().size());
  other.load(plain.save());
  CHECK(other.save() == plain.save());
  // A job that makes no drafts goes on from a planner that knows of them.
  options.drafts = false;
  Planner without_drafts(tcp({1, 2, 4}), chain, options);
  without_drafts.begin(workload(32));
  without_drafts.load(drafting.save());
  CHECK(without_drafts.save().size() < drafting.save().size());
}

TEST_CASE("a damaged state is refused") {
  Planner planner(tcp({1, 2}), DivisorChain::of(2), PlannerOptions{});
  std::string bytes = planner.save();
  CHECK_NOTHROW(planner.load(bytes));
  bytes.resize(bytes.size() - sizeof(std::int64_t));
  CHECK_THROWS_AS(planner.load(bytes), Error);
  CHECK_THROWS_AS(planner.load({}), Error);
}

TEST_CASE("what another version has saved is refused, and a question about it changes nothing") {
  Planner planner(test::synthetic_profile(test::small_model_tcp(), {1, 2}), DivisorChain({1, 2}),
                  {});
  std::string bytes = planner.save();
  CHECK_NOTHROW(planner.load(bytes));
  CHECK_NOTHROW(planner.require_loadable(bytes));
  REQUIRE(!bytes.empty());
  --bytes.front();  // the version
  const std::string before = planner.save();
  CHECK_THROWS_AS(planner.require_loadable(bytes), Error);
  CHECK_THROWS_AS(planner.load(bytes), Error);
  CHECK(planner.save() == before);
}

TEST_CASE("replicas' speeds teach step times by degree and number of sequences") {
  const DivisorChain chain({1, 2});
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  Planner planner(profile, chain, {});
  planner.begin(workload(8));
  Snapshot now{Layout::uniform(1, chain), std::vector<ReplicaSnapshot>(2), 1'000'000, 0, 0};
  const auto set = [&](int replica, int running, int speed) {
    ReplicaSnapshot& r = now.replicas[static_cast<std::size_t>(replica)];
    r.lengths[5] = static_cast<std::uint16_t>(running);
    r.context = static_cast<std::uint32_t>(100 * running);
    r.longest = 100;
    r.response = static_cast<std::uint32_t>(50 * running);
    r.speed = static_cast<std::uint16_t>(speed);
  };
  set(0, 7, 1100);
  set(1, 1, 900);
  planner.decide(now);
  StepModel alone(profile);
  const std::vector<StepModel::Speed> speeds{{1, 7, 1100}, {1, 1, 900}};
  alone.observe(speeds);
  const auto words_of = [](const std::string& bytes) {
    std::vector<std::int64_t> words;
    for (ByteReader in(bytes); !in.done();) words.push_back(in.value<std::int64_t>());
    return words;
  };
  const std::vector<std::int64_t> all = words_of(planner.save()), steps = words_of(alone.save());
  // Common and scale, generations, then degree, length_bucket() and factor of each.
  REQUIRE(steps.size() == 3 + 2 * 3);
  CHECK(steps[3] == 1);
  CHECK(steps[4] == 0);
  CHECK(steps[5] < 1 << 20);
  CHECK(steps[7] == 2);
  REQUIRE(all.size() > 2 + steps.size());
  CHECK(all[1] == std::ssize(steps));
  CHECK(std::vector(all.begin() + 2, all.begin() + 2 + std::ssize(steps)) == steps);
}

// The integers in state.h5: a change of their order needs a new version.
TEST_CASE("a state is saved in the form that checkpoints have") {
  const DivisorChain chain({1, 2});
  Planner planner(test::synthetic_profile(test::small_model_tcp(), {1, 2}), chain, {});
  planner.begin(workload(8));
  planner.switched({Layout::uniform(2, chain), PlanStart::kNow, 0, Repack::kYes}, 7);
  const std::string bytes = planner.save();
  std::vector<std::int64_t> words;
  for (ByteReader in(bytes); !in.done();) words.push_back(in.value<std::int64_t>());
  const std::int64_t one = 1 << 20, bins = 63 + 14 * 64, limit = workload(8).max_new_tokens;
  std::vector<std::int64_t> expected{7, 3, one, one, 0, 3 + 2 * bins, limit, 0, 0};
  expected.insert(expected.end(), 2 * bins, 0);                  // lengths
  expected.insert(expected.end(), {8, 0, 0, 7, 0, 0, 0, 0, 0});  // budget
  expected.insert(expected.end(), {0, 4, 1, -1, 0, 0, 4, 0, 1, 1, 2, 2, 0, 0});
  CHECK(words == expected);
}
