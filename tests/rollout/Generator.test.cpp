// SPDX-License-Identifier: Apache-2.0
//
// Whole generations whose replicas agree upon changes of layout among themselves.
#include "rollout/Generator.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "base/Packing.hpp"
#include "base/Random.hpp"
#include "base/Text.hpp"
#include "checkpoint/CutLayers.hpp"
#include "comm/Collectives.hpp"
#include "instance/DirectoryWeights.hpp"
#include "instance/InferenceModel.hpp"
#include "rollout/GeneratedSample.hpp"
#include "session/SharedArena.hpp"
#include "support/Halves.hpp"
#include "support/Scratch.hpp"
#include "support/ScriptedPlanner.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// A golden model on the given ranks, generating with a planner of the test.
struct GoldenGenerator {
  GoldenGenerator(PlannerMode mode, const std::string& layout, const Ranks& given,
                  const SpeculationOptions& speculation = {})
      : ranks(given),
        files(TAPER_GOLDEN_DIR "/models/llama_b"),
        generator(options(mode, layout, speculation), WeightType::kF32, files, ranks,
                  MemoryPhase::kAlways),
        local(files.table, shard()) {
    MemoryPlan plan;
    PackedModel::add_memory(plan, "test", local, WeightType::kF32, WithBackward::kNo);
    generator.add_memory(plan);
    arena = make_arena(ranks, plan);
    packed = std::make_unique<PackedModel>("test", local, shard(), WeightType::kF32,
                                           WithBackward::kNo, *arena);
    load_packed(ranks.exec, files, *packed);
    generator.create(*packed, *arena, files.rope_table(generator.max_positions()));
  }

  static GeneratorOptions options(PlannerMode mode, const std::string& layout,
                                  const SpeculationOptions& speculation) {
    GeneratorOptions o;
    o.speculation = speculation;
    o.speculation.draft_length = 5;
    o.mode = mode;
    o.layout = layout;
    o.max_prompt_tokens = 140;
    o.max_new_tokens = 60;
    o.max_running = 6;
    o.step_rows = 40;
    return o;
  }

  ModelShard shard() const {
    const int tp = generator.smallest_degree();
    return {files.table, tp, ranks.chain.shard_index(ranks.rank(), tp)};
  }

  std::vector<Request> requests() const {
    RandomStream random(prompts, RandomPurpose::kTest, 0, 0);
    std::vector<Request> list;
    for (int i = 0; i < 10; ++i) {
      Request r;
      r.first.prompt = i;
      r.samples = 1 + i % 3;
      r.max_new_tokens = 20 + 4 * (i % 9);
      const int length = static_cast<int>(random.between(1, 140));
      for (int k = 0; k < length; ++k)
        r.prompt.push_back(static_cast<std::int32_t>(random.below(files.config.vocab)));
      list.push_back(std::move(r));
    }
    return list;
  }

  std::vector<Completion> run(const std::function<bool(const Group&)>& stop = {},
                              const std::optional<RaceGoal>& race = {}) {
    SamplingOptions sampling;
    sampling.seed = 12;
    sampling.iteration = 3;
    return generator.run(requests(), sampling, {{2, 40}, {}, {}}, stop, {}, race);
  }

  void script(const std::string& initial, const std::vector<ScriptedChange>& changes) {
    generator.set_planner(
        std::make_unique<ScriptedPlanner>(parse_layout(initial, ranks.chain), changes),
        {0, 1, 0.9});
  }
  ScriptedChange change(std::int64_t consultation, const std::string& layout, bool mixed = false,
                        Repack repack = Repack::kNo) const {
    return {consultation, {parse_layout(layout, ranks.chain), PlanStart::kNow, 0, repack}, mixed};
  }

  const Ranks& ranks;
  ModelFiles files;
  Generator generator;
  LocalParams local;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<PackedModel> packed;
  std::uint64_t prompts = 1;  // their seed
};

// The same on all ranks of a world.
struct Fixture : TestRanks, GoldenGenerator {
  Fixture(PlannerMode mode, const std::string& layout, MPI_Comm comm = MPI_COMM_WORLD,
          int size = world_size(), const SpeculationOptions& speculation = {})
      : TestRanks(degrees_of_layout("", layout), comm, size),
        GoldenGenerator(mode, layout, TestRanks::ranks, speculation) {}
  using GoldenGenerator::ranks;
};

struct ResponseLength {
  ResponseId id;
  int length = 0;
};

// All ranks' responses, as a journal has them.
std::vector<RolloutRecord> journal_of(const Group& world, std::vector<Completion> mine) {
  std::vector<RolloutRecord> records, all;
  for (const Sample& s : as_samples(std::move(mine))) records.push_back(record_of(s, false));
  for (const std::string& part : all_gather_string(world, packed(records)))
    for (RolloutRecord& r : unpacked<std::vector<RolloutRecord>>(part)) all.push_back(std::move(r));
  return all;
}

// What was drafted came from the sources.
void check_sources(const SpeculationFigures& figures) {
  DraftTotals sum;
  for (const DraftTotals& s : figures.sources) {
    sum.drafted += s.drafted;
    sum.accepted += s.accepted;
  }
  CHECK(sum.drafted == figures.total().drafted);
  CHECK(sum.accepted == figures.total().accepted);
}

// Tokens and log-probs of all responses, as one number per response: equal bits, equal numbers.
std::map<ResponseId, std::uint64_t> digest(const Group& world,
                                           const std::vector<Completion>& mine) {
  std::vector<std::int64_t> words;
  for (const Completion& c : mine) {
    std::string bytes(reinterpret_cast<const char*>(c.response.data()), c.response.size() * 4);
    bytes.append(reinterpret_cast<const char*>(c.log_probs.data()), c.log_probs.size() * 4);
    words.insert(words.end(), {c.id.prompt, c.id.sample, static_cast<std::int64_t>(fnv1a(bytes))});
  }
  std::vector<std::int64_t> counts(world.size());
  all_gather(world, counts, std::vector<std::int64_t>{static_cast<std::int64_t>(words.size())});
  std::int64_t total = 0;
  for (const auto count : counts) total += count;
  std::vector<std::int64_t> all(static_cast<std::size_t>(total));
  all_gather_v(world, all, words, counts);
  std::map<ResponseId, std::uint64_t> result;
  for (std::size_t i = 0; i < all.size(); i += 3)
    result[{all[i], static_cast<int>(all[i + 1])}] = static_cast<std::uint64_t>(all[i + 2]);
  return result;
}

// Of all responses.
std::map<ResponseId, int> lengths_of(const Group& world, const std::vector<Completion>& mine) {
  std::map<ResponseId, int> lengths;
  std::vector<ResponseLength> list;
  for (const Completion& c : mine) list.push_back({c.id, static_cast<int>(c.response.size())});
  for (const std::string& part : all_gather_string(world, packed(list)))
    for (const ResponseLength& r : unpacked<std::vector<ResponseLength>>(part))
      lengths[r.id] = r.length;
  return lengths;
}

// Layouts to go through on this number of ranks.
std::vector<std::string> route(int ranks = world_size()) {
  switch (ranks) {
    case 1:
      return {"1x1"};
    case 2:
      return {"1x2", "2x1"};
    case 3:
      return {"1x3", "3x1"};
    default:
      return {"1x4", "2+1+1", "4x1", "2x2"};
  }
}

}  // namespace

TEST_CASE("a generation that changes its layout is the one that does not") {
  Fixture fixed(PlannerMode::kStatic, route().front());
  const auto expected = digest(fixed.ranks.world(), fixed.run());
  CHECK(expected.size() == 19);
  CHECK(fixed.generator.report().switches.empty());

  Fixture adaptive(PlannerMode::kAdaptive, "");
  CHECK(adaptive.generator.smallest_degree() == 1);
  const auto layouts = route();
  std::size_t switches = 0;
  for (const std::int64_t first : {0, 1, 3}) {
    for (const bool mixed : {false, true}) {
      std::vector<ScriptedChange> changes;
      for (std::size_t i = 1; i <= 6 && layouts.size() > 1; ++i)
        changes.push_back(adaptive.change(first + static_cast<std::int64_t>(i) - 1,
                                          layouts[i % layouts.size()], mixed,
                                          i % 3 == 0 ? Repack::kYes : Repack::kNo));
      adaptive.script(layouts.front(), changes);
      CHECK(digest(adaptive.ranks.world(), adaptive.run()) == expected);
      const GenerationReport& report = adaptive.generator.report();
      switches += report.switches.size();
      for (const SwitchRecord& s : report.switches) CHECK(s.report.done);
      if (adaptive.ranks.rank() == 0) {
        REQUIRE(!report.decisions.empty());
        for (std::size_t i = 1; i < report.decisions.size(); ++i)
          CHECK(report.decisions[i].snapshot.consultation ==
                report.decisions[i - 1].snapshot.consultation + 1);
      }
    }
  }
  if (layouts.size() > 1) CHECK(switches >= 6);
}

// Counts what it was asked on this rank; what leaders learn, others learn by bytes alone.
class CountingPlanner : public ScriptedPlanner {
 public:
  using ScriptedPlanner::ScriptedPlanner;

  Layout begin(const Workload& workload) override {
    begun_with = count_;
    return ScriptedPlanner::begin(workload);
  }
  Decision decide(const Snapshot& snapshot) override {
    ++count_;
    return ScriptedPlanner::decide(snapshot);
  }
  std::string save() const override { return packed(std::vector{count_}); }
  void load(std::string_view bytes) override {
    count_ = unpacked<std::vector<std::int64_t>>(bytes).at(0);
  }

  std::int64_t begun_with = 0;

 private:
  std::int64_t count_ = 0;
};

TEST_CASE(
    "all ranks begin a generation with what rank 0 knows, also after one that taught nothing") {
  const auto layouts = route();
  if (layouts.size() == 1) return;
  Fixture f(PlannerMode::kAdaptive, "");
  const auto planner = std::make_shared<CountingPlanner>(parse_layout(layouts[0], f.ranks.chain),
                                                         std::vector{f.change(0, layouts[1])});
  f.generator.set_planner(planner, {0, 1, 0.9});
  f.run();
  CHECK(f.generator.report().switches.size() == 1);
  f.run();
  std::vector<std::int64_t> begun(static_cast<std::size_t>(f.ranks.size()));
  all_gather(f.ranks.world(), begun, std::vector{planner->begun_with});
  CHECK(begun.front() > 0);
  CHECK(begun == std::vector(begun.size(), begun.front()));
}

TEST_CASE("drafts change nothing, whatever the layouts are") {
  Fixture plain(PlannerMode::kStatic, route().front());
  const auto expected = digest(plain.ranks.world(), plain.run());
  CHECK(plain.generator.report().speculation.total().steps == 0);
  const std::string golden = TAPER_GOLDEN_DIR "/models/";
  std::vector<SpeculationOptions> all(6);
  all[0].mode = all[2].mode = all[3].mode = all[5].mode = SpeculationMode::kFixed;
  all[1].mode = all[4].mode = SpeculationMode::kAuto;
  all[2].draft_model = golden + "llama_b";  // the policy itself
  all[3].draft_model = all[4].draft_model = golden + "qwen2_b";
  // Deep enough for windows of several layers.
  const Scratch scratch;
  if (plain.ranks.rank() == 0)
    cut_layers(ModelFiles(golden + "llama_b"), {0, 1, 0, 1, 0, 1}, scratch / "deep");
  barrier(plain.ranks.world());
  all[5].draft_model = (scratch / "deep").string();
  all[5].draft_placement = DraftPlacement::kLayer;
  all[2].draft_placement = all[4].draft_placement = DraftPlacement::kTensor;
  for (const SpeculationOptions& speculation : all) {
    // That model is too small for more ranks.
    if (&speculation == &all[4] && world_size() > 2) continue;
    Fixture f(PlannerMode::kAdaptive, "", MPI_COMM_WORLD, world_size(), speculation);
    const auto layouts = route();
    for (int round = 0; round < 3; ++round) {
      INFO("case " << &speculation - all.data() << ", round " << round);
      std::vector<ScriptedChange> changes;
      for (std::size_t i = 1; i <= 6 && layouts.size() > 1; ++i)
        changes.push_back(f.change(static_cast<std::int64_t>(i) - 1, layouts[i % layouts.size()],
                                   i % 2 == 0, i % 3 == 0 ? Repack::kYes : Repack::kNo));
      f.script(layouts.front(), changes);
      CHECK(digest(f.ranks.world(), f.run()) == expected);
      const SpeculationFigures& figures = f.generator.report().speculation;
      const DecodeTotals total = figures.total();
      CHECK(total.accepted <= total.drafted);
      check_sources(figures);
      const std::int64_t by_model = figures.sources[static_cast<int>(DraftSource::kModel)].drafted;
      if (speculation.draft_model.empty()) CHECK(by_model == 0);
      if (!speculation.draft_model.empty() && speculation.mode == SpeculationMode::kFixed &&
          round == 0)
        CHECK(by_model > 0);
      // The second time, each response is known, and each of its random numbers; the policy knows
      // itself at once.
      if (speculation.mode == SpeculationMode::kFixed && (round > 0 || &speculation == &all[2])) {
        CHECK(total.acceptance() > 0.8);
        CHECK(total.tokens_per_step() > 2.0);
      }
    }
  }
}

TEST_CASE("ranks that sleep at random agree all the same") {
  Fixture f(PlannerMode::kAdaptive, "");
  const auto layouts = route();
  f.script(layouts.front(), {});
  const auto expected = digest(f.ranks.world(), f.run());
  RandomStream shared(3, RandomPurpose::kTest, 0, 0),
      mine(3, RandomPurpose::kTest, 1, static_cast<std::uint64_t>(f.ranks.rank()));
  std::int64_t switches = 0;
  for (int round = 0; round < 12; ++round) {
    std::vector<ScriptedChange> changes;
    for (std::int64_t c = 0; c < 60; c += 1 + static_cast<std::int64_t>(shared.below(4)))
      changes.push_back(f.change(c, layouts[shared.below(layouts.size())], shared.below(2) == 0,
                                 shared.below(3) == 0 ? Repack::kYes : Repack::kNo));
    f.script(layouts[shared.below(layouts.size())], changes);
    const auto sleepy = [&](const Group&) {
      if (mine.below(3) == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(mine.below(3000)));
      return false;
    };
    REQUIRE(digest(f.ranks.world(), f.run(sleepy)) == expected);
    switches += static_cast<std::int64_t>(f.generator.report().switches.size());
  }
  CHECK(switches > 20);  // how many proposals are still open when they arrive is up to the sleeps
}

TEST_CASE("a race keeps what all final lengths say, in any layout and with any delays") {
  Fixture f(PlannerMode::kAdaptive, "");
  const auto layouts = route();
  f.script(layouts.front(), {});
  const std::vector<Completion> all = f.run();
  const auto expected = digest(f.ranks.world(), all);
  const auto lengths = lengths_of(f.ranks.world(), all);
  const RaceGoal goal{5, 1};  // of ten prompts with one to three samples
  RandomStream shared(4, RandomPurpose::kTest, 0, 0),
      mine(4, RandomPurpose::kTest, 1, static_cast<std::uint64_t>(f.ranks.rank()));
  const auto kept_of = [&](const std::map<ResponseId, int>& ended) {
    Race race(goal);
    for (const auto& [id, length] : ended) race.ended(id, length);
    return race.kept();
  };
  std::int64_t aborted = 0, switches = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<ScriptedChange> changes;
    for (std::int64_t c = 0; c < 30; c += 1 + static_cast<std::int64_t>(shared.below(4)))
      changes.push_back(f.change(c, layouts[shared.below(layouts.size())], shared.below(2) == 0,
                                 shared.below(3) == 0 ? Repack::kYes : Repack::kNo));
    f.script(layouts[shared.below(layouts.size())], changes);
    const auto sleepy = [&](const Group&) {
      if (round > 0 && mine.below(3) == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(mine.below(3000)));
      return false;
    };
    std::vector<Completion> ended = f.run(sleepy, goal);
    std::erase_if(ended, [](const Completion& c) { return c.finish == FinishReason::kAbort; });
    const auto left = lengths_of(f.ranks.world(), ended);
    REQUIRE(kept_of(left) == kept_of(lengths));
    for (const auto& [id, bits] : digest(f.ranks.world(), ended)) CHECK(bits == expected.at(id));
    aborted += std::ssize(lengths) - std::ssize(left);
    switches += std::ssize(f.generator.report().switches);
  }
  CHECK(aborted > 10);
  if (layouts.size() > 1) CHECK(switches > 10);
}

TEST_CASE("blocks of ranks generate side by side what as many ranks generate alone") {
  const TestRanks all;
  const Half half(all.ranks.rank());
  const auto layouts = route(half.size);
  const std::uint64_t prompts = half.is_upper() ? 1 : 2;

  Fixture alone(PlannerMode::kStatic, layouts.front(), WorldOfHalf(half).comm, half.size);
  alone.prompts = prompts;
  const auto expected = digest(alone.ranks.world(), alone.run());
  CHECK(expected.size() == 19);

  const Ranks block = all.ranks.block(half.first, half.size, {});
  GoldenGenerator adaptive(PlannerMode::kAdaptive, "", block);
  adaptive.prompts = prompts;
  std::vector<ScriptedChange> changes;
  for (std::size_t i = 1; i <= 4 && layouts.size() > 1; ++i)
    changes.push_back(
        adaptive.change(static_cast<std::int64_t>(i) - 1, layouts[i % layouts.size()]));
  // The blocks do not wait for each other: one generates more often.
  for (int round = 0; round < (half.is_upper() ? 1 : 3); ++round) {
    adaptive.script(layouts.front(), changes);
    CHECK(digest(block.world(), adaptive.run()) == expected);
    if (layouts.size() > 1) CHECK(adaptive.generator.report().switches.size() >= 1);
  }
}

TEST_CASE("a generation that was interrupted is done again from what it had") {
  Fixture plain(PlannerMode::kStatic, route().front());
  const auto expected = digest(plain.ranks.world(), plain.run());
  for (const auto mode : {SpeculationMode::kAuto, SpeculationMode::kFixed}) {
    SpeculationOptions speculation;
    speculation.mode = mode;
    speculation.index_mb = 0;
    Fixture f(PlannerMode::kAdaptive, "", MPI_COMM_WORLD, world_size(), speculation);
    const auto layouts = route();
    // Nobody consults before it has to: a consultation under way could outlast all the work.
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    f.generator.set_planner(
        std::make_unique<ScriptedPlanner>(parse_layout(layouts.front(), f.ranks.chain),
                                          std::vector<ScriptedChange>{}),
        {kNever, 1, 0.9});
    int asked = 0;
    CHECK(f.run([&](const Group&) { return ++asked > 1; }).empty());
    REQUIRE(f.generator.stopped());
    const std::vector<Completion> mine = f.generator.take_interrupted();
    CHECK(f.generator.take_interrupted().empty());
    std::vector<std::int64_t> tokens{0};
    for (const Completion& c : mine) {
      tokens[0] += std::ssize(c.response);
      CHECK(!c.response.empty());
      CHECK(c.response.size() == c.log_probs.size());
    }
    all_reduce_sum(f.ranks.world(), tokens);
    REQUIRE(tokens[0] > 0);
    std::vector<ScriptedChange> changes;
    if (layouts.size() > 1) changes.push_back(f.change(0, layouts[1], true));
    f.script(layouts.front(), changes);
    f.generator.recall(journal_of(f.ranks.world(), mine));
    CHECK(digest(f.ranks.world(), f.run()) == expected);
    const SpeculationFigures& figures = f.generator.report().speculation;
    const DraftTotals& journal = figures.sources[static_cast<int>(DraftSource::kJournal)];
    CHECK(journal.drafted > tokens[0] / 8);  // steps that read prompts have no drafts
    // The token that ends a response is drawn whether it is drafted or not, and does not count.
    CHECK(journal.accepted <= journal.drafted);
    CHECK(journal.accepted >= journal.drafted - std::ssize(expected));
    check_sources(figures);
  }
}

TEST_CASE("one group that stops stops all") {
  Fixture f(PlannerMode::kAdaptive, "");
  f.script(route().front(), {});
  const auto completions =
      f.run([&](const Group& group) { return group.world_ranks().front() == 0; });
  CHECK(f.generator.stopped());
  CHECK(completions.empty());
  // And the next generation is whole.
  CHECK(digest(f.ranks.world(), f.run()).size() == 19);
  CHECK_FALSE(f.generator.stopped());
}

TEST_CASE("the planner is told how many responses a prompt has, where all have the same number") {
  struct Listener : ScriptedPlanner {
    using ScriptedPlanner::ScriptedPlanner;
    Layout begin(const Workload& work) override {
      told = work;
      return ScriptedPlanner::begin(work);
    }
    Workload told;
  };
  Fixture f(PlannerMode::kAdaptive, "");
  const auto planner = std::make_shared<Listener>(parse_layout(route().front(), f.ranks.chain));
  f.generator.set_planner(planner, {});
  std::vector<Request> requests = f.requests();
  f.generator.run(requests, {}, {});
  CHECK(planner->told.samples == 1);
  CHECK(planner->told.sequences == 19);
  for (Request& r : requests) r.samples = 2;
  f.generator.run(requests, {}, {});
  CHECK(planner->told.samples == 2);
  CHECK(planner->told.sequences == 20);
}
