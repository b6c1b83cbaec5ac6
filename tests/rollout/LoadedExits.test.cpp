// SPDX-License-Identifier: Apache-2.0
#include "rollout/LoadedExits.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <list>
#include <memory>
#include <optional>
#include <sstream>

#include "base/Random.hpp"
#include "checkpoint/WriteExits.hpp"
#include "comm/Collectives.hpp"
#include "instance/DirectoryWeights.hpp"
#include "instance/IdleLayers.hpp"
#include "rollout/Generator.hpp"
#include "session/SharedArena.hpp"
#include "support/Messages.hpp"
#include "support/ScriptedPlanner.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const std::string kGolden = TAPER_GOLDEN_DIR "/models/llama_b";

std::vector<std::int32_t> every(int step, int vocab) {
  std::vector<std::int32_t> ids;
  for (int id = 0; id < vocab; id += step) ids.push_back(id);
  return ids;
}

// Scales the norm of a head, and so its logits.
void scale_head(const fs::path& directory, float factor) {
  const ModelFiles head(directory, "exits", HeadChoice{.of_exit = true});
  const int norm = head.table.first_piece(head.table.index_of(ParamRole::kFinalNorm));
  std::vector<std::vector<float>> pieces;
  {
    const HuggingFaceReader reader = head.open_weights();
    for (int p = 0; p < head.table.pieces(); ++p) pieces.push_back(read_piece(head, reader, p));
  }
  for (float& value : pieces[static_cast<std::size_t>(norm)]) value *= factor;
  HuggingFaceWriter writer(directory / "model.safetensors", head.table, TensorType::kF32);
  for (int p = 0; p < head.table.pieces(); ++p)
    writer.write_piece(p, pieces[static_cast<std::size_t>(p)]);
  writer.commit();
}

// A policy of four layers, of which the last one adds nothing, and exits of it: with all ids, the
// last exit is greedy where the policy is.
struct Directories {
  explicit Directories(const Ranks& ranks) {
    if (ranks.rank() == 0) {
      write_idle_layers(ModelFiles(kGolden), {0, 1, 0, 1}, 3, policy);
      const ModelFiles files(policy);
      const auto all = every(1, files.config.vocab);
      write_exits(files, {1, 3}, all, plain);
      write_exits(files, {1, 3}, all, sure);
      scale_head(ExitFiles::head_directory(sure, 1), 16.0f);
      write_exits(files, {2}, every(2, files.config.vocab), few);
    }
    barrier(ranks.world());
  }

  Scratch scratch;
  fs::path policy = scratch / "policy";
  fs::path plain = scratch / "plain";
  fs::path sure = scratch / "sure";  // the first exit often is, of whatever token
  fs::path few = scratch / "few";    // knows half of the ids
};

GeneratorOptions options_for(const SpeculationOptions& speculation, const std::string& layout) {
  GeneratorOptions o;
  o.speculation = speculation;
  o.speculation.draft_length = 5;
  o.mode = layout.empty() ? PlannerMode::kAdaptive : PlannerMode::kStatic;
  o.layout = layout;
  o.max_prompt_tokens = 140;
  o.max_new_tokens = 60;
  o.max_running = 6;
  o.step_rows = 40;
  return o;
}

SpeculationOptions with_exits(const fs::path& directory) {
  SpeculationOptions o;
  o.mode = SpeculationMode::kFixed;
  o.early_exits = directory.string();
  return o;
}

// The policy on all ranks, generating in a layout that stays, or in changing ones.
struct ExitGenerator : TestRanks {
  ExitGenerator(const fs::path& policy, const SpeculationOptions& speculation,
                const std::string& layout)
      : TestRanks(degrees_of_layout("", layout)),
        files(policy),
        generator(options_for(speculation, layout), WeightType::kF32, files, ranks,
                  MemoryPhase::kAlways),
        local(files.table, shard()) {
    MemoryPlan plan;
    PackedModel::add_memory(plan, "test", local, WeightType::kF32, WithBackward::kNo);
    generator.add_memory(plan);
    if (speculation.trains_draft()) {
      exits.emplace(speculation.early_exits, "exits", files);
      for (const ModelFiles& head : exits->heads())
        heads.emplace_back("heads", head, ranks, 1).add_memory(plan, WeightType::kF32);
    }
    arena = make_arena(ranks, plan);
    packed = std::make_unique<PackedModel>("test", local, shard(), WeightType::kF32,
                                           WithBackward::kNo, *arena);
    load_packed(ranks.exec, files, *packed);
    std::vector<const PackedModel*> given;
    for (InferenceModel& head : heads) {
      head.load(WeightType::kF32, *arena);
      given.push_back(&head.packed());
    }
    generator.create(*packed, *arena, files.rope_table(generator.max_positions()), given);
    if (!layout.empty()) return;
    std::vector<ScriptedChange> changes;
    for (std::int64_t i = 0; i < 6; ++i)
      changes.push_back(
          {i,
           {parse_layout(i % 2 == 0 ? "2x1" : "1x2", ranks.chain), PlanStart::kNow, 0, Repack::kNo},
           i % 3 == 0});
    generator.set_planner(
        std::make_unique<ScriptedPlanner>(parse_layout("1x2", ranks.chain), changes), {0, 1, 0.9});
  }

  ModelShard shard() const {
    const int tp = generator.smallest_degree();
    return {files.table, tp, ranks.chain.shard_index(ranks.rank(), tp)};
  }

  // All ranks' responses with the bits of their log-probs, a line each.
  std::vector<std::string> run(float temperature) {
    SamplingOptions sampling;
    sampling.temperature = temperature;
    sampling.seed = 12;
    RandomStream random(1, RandomPurpose::kTest, 0, 0);
    std::vector<Request> requests;
    for (int i = 0; i < 8; ++i) {
      Request r;
      r.first.prompt = i;
      r.samples = 1 + i % 3;
      r.max_new_tokens = 20 + 4 * i;
      const int length = static_cast<int>(random.between(1, 140));
      for (int k = 0; k < length; ++k)
        r.prompt.push_back(static_cast<std::int32_t>(random.below(files.config.vocab)));
      requests.push_back(std::move(r));
    }
    std::ostringstream mine;
    for (const Completion& c : generator.run(requests, sampling, {})) {
      mine << c.id.prompt << '.' << c.id.sample;
      for (std::size_t i = 0; i < c.response.size(); ++i)
        mine << ' ' << c.response[i] << ':' << std::bit_cast<std::uint32_t>(c.log_probs[i]);
      mine << '\n';
    }
    std::vector<std::string> lines;
    for (const std::string& part : all_gather_string(ranks.world(), mine.str())) {
      std::istringstream in(part);
      for (std::string line; std::getline(in, line);) lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  DraftTotals by_exits() const {
    return generator.report().speculation.sources[static_cast<int>(DraftSource::kModel)];
  }

  ModelFiles files;
  Generator generator;
  LocalParams local;
  std::optional<ExitFiles> exits;  // if they are given
  std::list<InferenceModel> heads;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<PackedModel> packed;
};

// Layouts of these ranks; "" is one that changes.
std::vector<std::string> layouts() {
  return world_size() == 1 ? std::vector<std::string>{"1x1"}
                           : std::vector<std::string>{"1x2", "2x1", ""};
}

// Of the early exits alone.
std::vector<MemoryPlan::Item> planned(const Directories& d, const TestRanks& world,
                                      const SpeculationOptions& speculation) {
  const ModelFiles policy(d.policy);
  const GeneratorOptions options = options_for(speculation, "");
  const RolloutLayouts rollout(options, policy, world.ranks);
  MemoryPlan plan;
  LoadedExits(options, policy, rollout, world.ranks)
      .add_memory(plan, WeightType::kF32, plan.phase("generation"));
  return plan.items();
}

}  // namespace

TEST_CASE("exits change nothing of what is generated, whatever the layouts are") {
  const TestRanks world;
  const Directories d(world.ranks);
  for (const float temperature : {0.0f, 1.0f}) {
    const auto expected = ExitGenerator(d.policy, {}, layouts().front()).run(temperature);
    REQUIRE(expected.size() == 15);
    for (const std::string& layout : layouts())
      for (const fs::path& exits : {d.plain, d.sure, d.few}) {
        INFO("temperature " << temperature << ", layout " << layout << ", " << exits.filename());
        ExitGenerator g(d.policy, with_exits(exits), layout);
        CHECK((g.run(temperature) == expected));
        CHECK(g.by_exits().drafted > 0);
        if (layout.empty()) CHECK(!g.generator.report().switches.empty());
      }
  }
}

TEST_CASE("guesses of an exit that reads what the policy's head reads are right") {
  const TestRanks world;
  const Directories d(world.ranks);
  for (const std::string& layout : layouts()) {
    INFO("layout " << layout);
    ExitGenerator g(d.policy, with_exits(d.plain), layout);
    g.run(0.0f);
    const DraftTotals totals = g.by_exits();
    CHECK(totals.drafted > 100);
    CHECK(10 * totals.accepted > 8 * totals.drafted);
    // Behind the first layer, there is less to be known.
    ExitGenerator sure(d.policy, with_exits(d.sure), layout);
    sure.run(0.0f);
    CHECK(sure.by_exits().accepted * totals.drafted < totals.accepted * sure.by_exits().drafted);
  }
}

TEST_CASE("heads that are given draft as those of the files do") {
  const TestRanks world;
  const Directories d(world.ranks);
  SpeculationOptions trained = with_exits(d.sure);
  trained.train_steps = 1;
  ExitGenerator given(d.policy, trained, layouts().front()),
      loaded(d.policy, with_exits(d.sure), layouts().front());
  CHECK((given.run(1.0f) == loaded.run(1.0f)));
  CHECK(given.by_exits().drafted > 0);
  CHECK(given.by_exits().drafted == loaded.by_exits().drafted);
  CHECK(given.by_exits().accepted == loaded.by_exits().accepted);
}

TEST_CASE("the memory plan has streams and logits of exits, and heads unless they are trained") {
  const TestRanks world;
  const Directories d(world.ranks);
  SpeculationOptions trained = with_exits(d.plain);
  trained.train_steps = 1;
  const auto loaded = planned(d, world, with_exits(d.plain)), given = planned(d, world, trained);
  REQUIRE(loaded.size() == 2);
  CHECK(loaded[0].name == "early exits weights (packed)");
  CHECK(loaded[0].phase == MemoryPhase::kAlways);
  // Two heads of 331 rows of 96 values.
  CHECK(loaded[0].bytes >= 2 * 331 * 96 * 4);
  CHECK(loaded[1].name == "early exits (streams and logits)");
  CHECK(loaded[1].phase != MemoryPhase::kAlways);
  // 40 rows of a step.
  CHECK(loaded[1].bytes >= 40 * 96 * 4);
  REQUIRE(given.size() == 1);
  CHECK(given[0].name == loaded[1].name);
  CHECK(given[0].bytes == loaded[1].bytes);
}

TEST_CASE("exits of another model, and those that are not there, are refused") {
  const TestRanks world;
  const Directories d(world.ranks);
  const GeneratorOptions options = options_for(with_exits(d.plain), "");
  const ModelFiles other(kGolden);  // of two layers
  const RolloutLayouts rollout(options, other, world.ranks);
  CHECK_THAT(
      message_of([&] { LoadedExits(options, other, rollout, world.ranks); }),
      ContainsSubstring((d.plain / "exits.json").string()) && ContainsSubstring("has 2 layers"));
  GeneratorOptions missing = options;
  missing.speculation.early_exits = (d.scratch / "nothing").string();
  CHECK_THAT(message_of([&] { LoadedExits(missing, other, rollout, world.ranks); }),
             ContainsSubstring("Speculation/Early Exits is " + missing.speculation.early_exits +
                               " (no such file or directory)"));
}
