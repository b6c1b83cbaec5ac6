// SPDX-License-Identifier: Apache-2.0
#include "train/Rollouts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "instance/InferenceModel.hpp"
#include "train/TrainRuns.hpp"

using namespace taper;
using namespace taper::test;

namespace {

RunOptions sums() {
  RunOptions options = small_run(TAPER_DATA_DIR "/model", "");
  options.data.task = "sum";
  options.rollout.samples = 2;  // alike rather often
  options.rollout.max_new_tokens = 64;
  return options;
}

// What a training job makes before its rollouts, without what is trained.
struct Fixture : TestRanks {
  explicit Fixture(const RunOptions& o)
      : options(o),
        files(o.model.directory),
        generator(o.rollout, o.model.type, files, ranks, plan.phase("rollout")),
        judge(o.judged_by(), files, ranks, nullptr, ""),
        model("policy", files, ranks, generator.smallest_degree()),
        rollouts(options, files, ranks, generator, judge) {
    model.add_memory(plan, o.model.type);
    generator.add_memory(plan);
    arena = std::make_unique<Arena>(plan);
    model.load(ranks.exec, o.model.type, *arena);
    generator.create(model.packed(), *arena, files.rope_table(static_cast<int>(o.max_positions())));
  }

  std::optional<Batch> collect(std::int64_t iteration, std::int64_t first_batch,
                               const StopRequest* request = nullptr) {
    StopAgreement stop(request, ranks.world());
    PhaseTimer timer(progress);
    auto batch = rollouts.collect(iteration, first_batch, stop, timer);
    timer.stop();
    phases.clear();
    for (const auto& [name, seconds] : timer.seconds()) phases.push_back(name);
    return batch;
  }

  RunOptions options;
  ModelFiles files;
  MemoryPlan plan;
  Generator generator;
  Judge judge;
  InferenceModel model;
  Rollouts rollouts;
  std::unique_ptr<Arena> arena;
  std::vector<std::string> phases;  // of the last collect()
};

// Prompts and responses that this rank holds, in their order.
std::vector<std::vector<std::int32_t>> texts(const Batch& batch) {
  std::vector<std::vector<std::int32_t>> found;
  for (const Sample& s : batch.samples.here()) {
    found.push_back(s.prompt);
    found.push_back(s.response);
  }
  return found;
}

}  // namespace

TEST_CASE("an iteration has all samples of its prompts, with scores") {
  Fixture f(sums());
  const auto batch = f.collect(1, 0);
  REQUIRE(batch);
  CHECK(f.phases == std::vector<std::string>{"gen", "reward"});
  CHECK(batch->groups.rounds == 1);
  CHECK(batch->unscored.size() == 0);
  const auto samples = batch->summaries();
  REQUIRE(samples.size() == 8);
  std::set<float> scores;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    CHECK(samples[i].id.prompt == static_cast<std::int64_t>(i) / 2);
    CHECK(samples[i].id.sample == static_cast<int>(i % 2));
    CHECK((samples[i].response_tokens > 0 && samples[i].response_tokens <= 64));
    scores.insert(samples[i].score);
  }
  CHECK(scores.size() > 1);  // this model has some sums right
  REQUIRE(f.rollouts.generations().size() == 1);
  CHECK(f.rollouts.generations()[0].switches.empty());
}

TEST_CASE("pinned responses go on beyond the model's own ends, to the lengths of the law") {
  RunOptions options = sums();
  Fixture free(options);
  options.rollout.lengths = "no-tail";
  Fixture pinned(options);
  const auto first = free.collect(1, 0), second = pinned.collect(1, 0);
  REQUIRE((first && second));
  const auto expected = draw_lengths(LengthLaw::kNarrow, options.seed, 1, 8, 64);
  const auto before = first->summaries(), samples = second->summaries();
  REQUIRE((before.size() == 8 && samples.size() == 8));
  int beyond = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    CHECK(samples[i].response_tokens == expected[i]);
    CHECK(samples[i].finish == FinishReason::kStop);
    beyond += samples[i].response_tokens > before[i].response_tokens;
  }
  CHECK(beyond > 0);  // or there was nothing to test
}

TEST_CASE("iteration and prompts say what is drawn, not what was drawn before") {
  Fixture f(sums());
  const auto first = f.collect(1, 0), second = f.collect(2, 1), again = f.collect(1, 0);
  const auto other_draws = f.collect(2, 0);
  REQUIRE((first && second && again && other_draws));
  CHECK(texts(*first) == texts(*again));
  CHECK(texts(*first) != texts(*second));
  CHECK(texts(*first) != texts(*other_draws));
  for (std::size_t k = 0; k < first->samples.here().size(); ++k)
    CHECK(first->samples.here()[k].prompt == other_draws->samples.here()[k].prompt);
  const SamplingOptions one = f.rollouts.sampling(1), two = f.rollouts.sampling(2);
  CHECK(one.seed == f.options.seed);
  CHECK((one.iteration == 1 && two.iteration == 2));
}

TEST_CASE("rounds go on until enough groups can teach, each with ordinals of its own") {
  RunOptions options = sums();
  options.dynamic.on = true;
  options.dynamic.max_rounds = 3;
  Fixture f(options);
  const auto batch = f.collect(1, 0);
  REQUIRE(batch);
  const GroupCounts& groups = batch->groups;
  CHECK((groups.rounds > 1 && groups.rounds <= 3));  // or there was nothing to test
  CHECK(groups.dropped + groups.surplus == 4 * (groups.rounds - 1));
  const auto samples = batch->summaries();
  REQUIRE(samples.size() == 8);
  std::set<std::int64_t> ordinals;
  for (const SampleSummary& s : samples) ordinals.insert(s.id.prompt);
  CHECK(ordinals.size() == 4);
  CHECK(*ordinals.rbegin() >= 4);
  CHECK(*ordinals.rbegin() < 4 * groups.rounds);
}

TEST_CASE("a generation that was asked to stop gives nothing") {
  Fixture f(sums());
  StopRequest request;
  request.set_deadline(0.0);
  CHECK(!f.collect(1, 0, &request));
}
