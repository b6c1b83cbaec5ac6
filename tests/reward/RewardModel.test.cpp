// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "comm/Collectives.hpp"
#include "model/LoadedModel.hpp"
#include "reward/Judge.hpp"
#include "session/SharedArena.hpp"
#include "support/AllSamples.hpp"
#include "support/Bits.hpp"
#include "support/Messages.hpp"
#include "support/RewardDirectory.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinRel;
namespace fs = std::filesystem;

namespace {

const std::string kPolicy = TAPER_DATA_DIR "/model";

struct Fixture : TestRanks {
  Fixture() {
    if (ranks.rank() == 0) write_reward_model(kPolicy, {}, scratch / "rewards");
    barrier(ranks.world());
  }

  RewardOptions reward(const std::string& directory, double weight = 1.0) const {
    RewardOptions o;
    o.name = "preferred";
    o.kind = RewardKind::kModel;
    o.weight = weight;
    o.model.directory = directory;
    return o;
  }
  RewardModelSetup setup(int tp) const { return {WeightType::kF32, tp, 64, 64}; }
  std::vector<std::int32_t> ids(const std::string& text) const {
    const auto encoded = policy.tokenizer().encode(text, AddSpecial::kNo);
    return {encoded.begin(), encoded.end()};
  }
  std::vector<Sample> samples() const {
    std::vector<Sample> list;
    for (const char* text : {"#3", "12+34=46#46", "#", "12+34=47#47", "1"}) {
      Sample& s = list.emplace_back();
      s.id.sample = static_cast<int>(list.size()) - 1;
      s.prompt = ids("12+34=");
      s.response = ids(text);
    }
    return list;
  }
  // Those of this rank.
  std::vector<Sample> mine() const {
    std::vector<Sample> list = samples();
    std::erase_if(list,
                  [&](const Sample& s) { return s.id.sample % ranks.size() != ranks.rank(); });
    return list;
  }
  // Values of the last tokens by the pass of training, one sequence at a time on one rank.
  std::vector<float> expected() const {
    const Group self = Group::self();
    LoadedModel m(scratch / "rewards", self, WeightType::kF32, {}, 64);
    std::vector<float> values;
    for (const Sample& s : samples()) {
      PackedSequences one{s.prompt, {s.length()}};
      one.ids.insert(one.ids.end(), s.response.begin(), s.response.end());
      m.pass->forward(m.exec, *m.view, m.parallel, one);
      m.pass->values(m.exec, *m.view, std::vector<int>{s.length() - 1},
                     std::span(&values.emplace_back(), 1));
    }
    return values;
  }
  // Whether each rank gets the rewards of the samples that it judges, and each is judged.
  void check_rewards(RewardModel& model, const std::vector<float>& expected) const {
    std::vector<Sample> all = samples();
    for (Sample& s : all) s.rewards = {7.0f, NAN};
    constexpr float kKnown = -3.5f;
    all[2].rewards[1] = kKnown;
    SampleSet set = spread(ranks.world(), std::move(all));
    model.score(set, 1);
    std::vector<std::int32_t> judged(expected.size(), 0);
    for (std::size_t k = 0; k < set.here().size(); ++k) {
      const int row = set.rows()[k];
      const std::vector<float>& rewards = set.here()[k].rewards;
      CHECK(rewards[0] == 7.0f);
      CHECK(same_bits(std::vector{rewards[1]}, std::vector{row == 2 ? kKnown : expected[row]}));
      judged[row] = 1;
    }
    all_reduce_max(ranks.world(), judged);
    for (const int is_judged : judged) CHECK(is_judged == 1);
  }
  std::string error(const RewardOptions& o, const RewardModelSetup& how) const {
    return message_of([&] { RewardModel(o, policy, ranks, place_on_all(ranks, how.tp), how); });
  }

  Scratch scratch;
  ModelFiles policy{kPolicy};
};

}  // namespace

TEST_CASE("the reward is the value at the last token, the same bits in any layout") {
  const Fixture f;
  const auto expected = f.expected();
  for (const int tp : {1, world_size()}) {
    RewardModel model(f.reward((f.scratch / "rewards").string()), f.policy, f.ranks,
                      place_on_all(f.ranks, tp), f.setup(tp));
    model.require_weights();
    MemoryPlan plan;
    model.add_memory(plan);
    const auto memory = make_arena(f.ranks, plan);
    Arena& arena = *memory;
    model.create(arena);
    f.check_rewards(model, expected);
  }
}

TEST_CASE("degrees that models ask for have the names of their keys") {
  RewardOptions first, second;
  first.name = "first";
  first.model.tp = 2;
  second.name = "second";
  const NamedDegrees of_first{{"Rewards/first/Tensor Parallel", 2}};
  CHECK(degrees_of_models({first, second}) == of_first);  // 0: as in training
}

TEST_CASE("models judge on ranks of their own, beside other calls") {
  const Fixture f;
  const auto expected = f.expected();
  const int half = std::max(1, f.ranks.size() / 2);
  if (!f.ranks.chain.has(half)) return;  // three ranks have no halves
  const RankBlocks blocks(f.ranks, {half});
  const ModelPlace low = blocks.place({0, {half, 1}}),
                   high = blocks.place({f.ranks.size() - half, {1, half}});
  RewardOptions first = f.reward((f.scratch / "rewards").string(), 2.0), second = first;
  second.name = "second";
  Judge judge({first, second}, f.policy, f.ranks, nullptr, "", f.setup(1),
              {{"preferred", low}, {"second", high}});
  MemoryPlan plan;
  judge.add_memory(plan);
  const bool is_outside = low.ranks == nullptr && high.ranks == nullptr;
  CHECK((plan.total() == 0) == is_outside);
  const auto memory = make_arena(f.ranks, plan);
  Arena& arena = *memory;
  judge.load_models(arena);
  const std::vector<Prompt> prompts{{{}, "46", "sum", ""}};
  judge.begin(prompts);
  const ModelCall values{"values",
                         "critic",
                         high.layout,
                         high.group(),
                         [](SampleSet& samples) {
                           for (Sample& s : samples.here())
                             s.values.assign(s.response.size(), 0.5f);
                           return MetricValues{};
                         },
                         {SampleFigure::of(&Sample::values)}};
  CallRecord record({[](const char*) {}, [](const char*) {}}, f.ranks.progress);
  SampleSet set = judge.finish(f.mine(), {}, {&values, 1}, &record).value();
  const std::size_t calls = (low.ranks != nullptr) + 2 * (high.ranks != nullptr);
  CHECK(record.spans().size() == calls);
  const auto judged = all_samples(set);
  REQUIRE(judged.size() == expected.size());
  for (std::size_t i = 0; i < judged.size(); ++i) {
    CHECK(same_bits(judged[i].rewards, std::vector{expected[i], expected[i]}));
    CHECK_THAT(judged[i].score, WithinRel(4.0 * expected[i], 1e-6));
    CHECK(judged[i].values == std::vector<float>(judged[i].response.size(), 0.5f));
  }
}

TEST_CASE("a model judges beside rules, and its reward is recorded") {
  const Fixture f;
  const auto expected = f.expected();
  RewardOptions right;
  right.name = "right";
  right.kind = RewardKind::kTask;
  Judge judge({f.reward((f.scratch / "rewards").string(), 2.0), right}, f.policy, f.ranks, nullptr,
              "", f.setup(1));
  judge.require_judges();
  MemoryPlan plan;
  judge.add_memory(plan);
  const auto memory = make_arena(f.ranks, plan);
  Arena& arena = *memory;
  judge.load_models(arena);
  const std::vector<Prompt> prompts{{{}, "46", "sum", ""}};
  judge.begin(prompts);
  SampleSet set = judge.finish(f.mine(), {}).value();
  const auto judged = all_samples(set);
  REQUIRE(judged.size() == expected.size());
  for (std::size_t i = 0; i < judged.size(); ++i) {
    REQUIRE(judged[i].rewards.size() == 2);
    CHECK(judged[i].rewards[0] == expected[i]);
    CHECK(judged[i].rewards[1] == (i == 1 ? 1.0f : 0.0f));
    const double score = 2.0 * expected[i] + (i == 1 ? 1.0 : 0.0);
    CHECK_THAT(judged[i].score, WithinRel(score, 1e-6));
    CHECK(judged[i].unshaped_score == judged[i].score);
  }
  const double mean = value_of(judge.metrics("reward"), "reward/preferred/mean");
  double sum = 0;
  for (const float value : expected) sum += value;
  CHECK_THAT(mean, WithinRel(sum / static_cast<double>(expected.size()), 1e-6));
}

TEST_CASE("models that cannot judge the policy are refused with what is wrong") {
  const Fixture f;
  const std::string directory = (f.scratch / "rewards").string();
  CHECK(f.error(f.reward(directory), f.setup(1)).empty());
  CHECK_THAT(
      f.error(f.reward(kPolicy), f.setup(1)),
      ContainsSubstring("Rewards/preferred/Directory") && ContainsSubstring("is a language model"));
  CHECK_THAT(f.error(f.reward((f.scratch / "nothing").string()), f.setup(1)),
             ContainsSubstring("Rewards/preferred/Directory"));
  RewardModelSetup longer = f.setup(1);
  longer.max_positions = 1 << 20;
  CHECK_THAT(f.error(f.reward(directory), longer), ContainsSubstring("positions"));

  const fs::path tokenizer = f.scratch / "rewards/tokenizer.json";
  barrier(f.ranks.world());
  if (f.ranks.rank() == 0) {
    std::string text = slurp(tokenizer);
    const auto at = text.find("<|eos|>");
    REQUIRE(at != std::string::npos);
    spill(tokenizer, text.replace(at, 7, "<|end|>"));
  }
  barrier(f.ranks.world());
  CHECK_THAT(f.error(f.reward(directory), f.setup(1)),
             ContainsSubstring("another tokenizer") && ContainsSubstring("tokenizer.json"));
}
