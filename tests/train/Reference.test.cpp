// SPDX-License-Identifier: Apache-2.0
#include "train/Reference.hpp"

#include <catch2/catch_test_macros.hpp>

#include "model/LoadedModel.hpp"
#include "session/SharedArena.hpp"
#include "support/AllSamples.hpp"
#include "support/Bits.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr const char* kModel = TAPER_GOLDEN_DIR "/models/llama_b";

RunOptions options() {
  RunOptions o;
  o.model.directory = kModel;
  o.model.type = WeightType::kF32;
  o.rollout.max_prompt_tokens = 16;
  o.rollout.max_new_tokens = 16;
  o.training.max_tokens = 64;
  return o;
}

std::vector<Sample> samples() {
  std::vector<Sample> list;
  for (int i = 0; i < 6; ++i) {
    Sample& s = list.emplace_back();
    s.id.prompt = i / 2;
    s.id.sample = i % 2;
    for (int k = 0; k < 3 + i / 2; ++k) s.prompt.push_back((7 * k + i / 2) % 50);
    for (int k = 0; k < 1 + 2 * i; ++k) s.response.push_back((11 * k + i) % 50);
    s.log_probs.assign(s.response.size(), -1.0f);
  }
  return list;
}

// By the pass of training, one sequence at a time on one rank.
std::vector<std::vector<float>> expected(const ModelFiles& files) {
  const Group self = Group::self();
  LoadedModel m(kModel, self);
  std::vector<std::vector<float>> all;
  for (const Sample& s : samples())
    all.push_back(
        response_log_probs({m.exec, *m.view, m.parallel, *m.pass, {}, {files.valid_ids(), 1.0f}},
                           {s.prompt}, {s.response})
            .front());
  return all;
}

}  // namespace

TEST_CASE("a reference says the same on ranks of its own, in memory of its own") {
  const TestRanks world;
  const RunOptions o = options();
  ModelFiles files(kModel);
  const auto right = expected(files);
  const int size = world.ranks.size();
  const RankBlocks blocks(world.ranks, world.ranks.chain.degrees());
  // The policy is on all ranks; the reference is on them in another layout, or on the last one.
  for (const ModelLayout& layout : {ModelLayout{0, {size, 1}}, ModelLayout{size - 1, {1, 1}}}) {
    INFO(to_string(layout));
    MemoryPlan plan;
    Placement placement;
    placement.policy = placement.generation = {0, {1, size}};
    Policy policy(o, files, blocks, placement, 1, plan.phase("training"));
    Reference reference(o, files, blocks.place(layout), policy, plan.phase("training"));
    policy.add_memory(plan);
    const std::int64_t before = plan.total();
    reference.add_memory(plan);
    CHECK((plan.total() > before) == blocks.has(layout.ranks()));
    const auto memory = make_arena(world.ranks, plan);
    Arena& arena = *memory;
    const ConstFloatMatrix rope = files.rope_table(32);
    policy.create(arena, rope);
    reference.create(arena, rope);
    policy.load_start();
    std::vector<Sample> mine;
    for (Sample& s : samples())
      if (s.id.prompt % size == world.ranks.rank()) mine.push_back(std::move(s));
    SampleSet set(world.ranks.world(), std::move(mine));
    const bool is_on_all = layout.grid.ranks() == size;
    SampleSet copy =
        is_on_all ? SampleSet() : set.copy_to(layout.ranks(), reference.place().group());
    SampleSet& scored = is_on_all ? set : copy;
    if (reference.place().ranks != nullptr) reference.score(scored);
    if (!is_on_all) set.take(copy, SampleFigure::of(&Sample::ref_log_probs));
    const auto all = all_samples(set);
    REQUIRE(all.size() == right.size());
    // In the layout of the policy it is the policy before the first step, as the rollout said it.
    for (std::size_t i = 0; i < all.size(); ++i)
      if (layout == placement.policy)
        CHECK(all[i].ref_log_probs == all[i].log_probs);
      else
        CHECK(same_bits(all[i].ref_log_probs, right[i]));
  }
}
