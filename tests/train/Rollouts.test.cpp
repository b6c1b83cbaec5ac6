// SPDX-License-Identifier: Apache-2.0
#include "train/Rollouts.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/Packing.hpp"
#include "instance/InferenceModel.hpp"
#include "session/SharedArena.hpp"
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
        generator(o.rollout, o.model.type, files, ranks, plan.phase("generation")),
        judge(o.judged_by(), files, ranks, nullptr, ""),
        model("policy", files, ranks, generator.smallest_degree()),
        rollouts(options, files, ranks, &generator, judge) {
    model.add_memory(plan, o.model.type);
    generator.add_memory(plan);
    arena = make_arena(ranks, plan);
    model.load(o.model.type, *arena);
    generator.create(model.packed(), *arena, files.rope_table(static_cast<int>(o.max_positions())));
  }

  // After so many batches of prompts.
  std::optional<Batch> collect(std::int64_t iteration, std::int64_t batches,
                               const StopRequest* request = nullptr) {
    StateInfo state;
    state.prompt_batches = batches;
    rollouts.set_state(state);
    return go_on(iteration, request);
  }

  // After the last finished iteration.
  std::optional<Batch> go_on(std::int64_t iteration, const StopRequest* request = nullptr) {
    StopAgreement stop(request, ranks.world());
    PhaseTimer timer(progress);
    auto batch = rollouts.collect(iteration, stop, timer, {});
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

// All responses of an iteration with the numbers of their prompts in the stream, of all ranks.
struct Trained {
  std::int64_t number = 0;
  int sample = 0;
  std::vector<std::int32_t> prompt, response;
  std::vector<float> log_probs;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.number, self.sample, self.prompt, self.response, self.log_probs);
  }
  friend auto operator<=>(const Trained&, const Trained&) = default;
};
std::vector<Trained> trained(const Fixture& f, const Batch& batch, std::int64_t first) {
  std::vector<Trained> mine, all;
  const auto stream = f.rollouts.stream();
  for (const Sample& s : batch.samples.here()) {
    const std::int64_t number = stream.empty() ? first + s.id.prompt : stream.at(s.id.prompt);
    mine.push_back({number, s.id.sample, s.prompt, s.response, s.log_probs});
  }
  for (const std::string& part : all_gather_string(f.ranks.world(), packed(mine)))
    for (Trained& t : unpacked<std::vector<Trained>>(part)) all.push_back(std::move(t));
  return all;
}

// What so many iterations train, in the order of the stream.
std::vector<Trained> period(RunOptions options, const RoundOptions& rounds, int iterations) {
  options.rollout.rounds = rounds;
  Fixture f(options);
  std::vector<Trained> all;
  for (int n = 1; n <= iterations; ++n) {
    const auto batch = f.go_on(n);
    REQUIRE(batch);
    for (Trained& t : trained(f, *batch, std::int64_t{n - 1} * options.rollout.prompts))
      all.push_back(std::move(t));
    f.rollouts.advance();
  }
  CHECK(f.rollouts.waiting() == 0);
  std::sort(all.begin(), all.end());
  return all;
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

TEST_CASE("short rounds keep the prompts whose responses end first, long ones those put off") {
  RunOptions options = sums();
  options.rollout.rounds = {RoundMode::kTail, 1.5, 1.0};
  Fixture f(options);
  std::set<std::int64_t> kept;
  std::vector<RoundKind> kinds;
  std::int64_t aborted = 0;
  for (int n = 1; n <= 3; ++n) {
    const auto batch = f.go_on(n);
    REQUIRE(batch);
    CHECK(batch->size() == 8);
    REQUIRE(f.rollouts.reports().size() == 1);
    const RoundReport& round = f.rollouts.reports().front();
    kinds.push_back(round.kind);
    aborted += round.aborted;
    CHECK(round.kept == 8);
    CHECK(round.responses == (round.kind == RoundKind::kShort ? 12 : 8));
    int longest = 0;
    for (const SampleSummary& s : batch->summaries()) {
      longest = std::max(longest, s.response_tokens);
      kept.insert(f.rollouts.stream().at(s.id.prompt));
    }
    CHECK(round.longest_kept == longest);
    f.rollouts.advance();
    CHECK(f.rollouts.waiting() == round.waiting);
  }
  CHECK(kinds == std::vector<RoundKind>{RoundKind::kShort, RoundKind::kShort, RoundKind::kLong});
  CHECK(kept.size() == 12);
  // On several ranks, the news may come when the others have ended by themselves.
  if (f.ranks.size() == 1) CHECK(aborted > 0);
}

TEST_CASE("while weights do not change, a period of tail batching trains what plain rounds train") {
  const auto plain = period(sums(), {}, 3);
  CHECK(plain.size() == 24);
  CHECK(period(sums(), {RoundMode::kTail, 1.5, 1.0}, 3) == plain);
  CHECK(period(sums(), {RoundMode::kTail, 2.0, 1.0}, 4) == period(sums(), {}, 4));
  CHECK(period(sums(), {RoundMode::kTail, 1.0, 1.0}, 3) == plain);
  RunOptions pinned = sums();
  pinned.rollout.lengths = "heavy-tail";
  CHECK(period(pinned, {RoundMode::kTail, 1.5, 1.0}, 3) == period(pinned, {}, 3));
}

TEST_CASE("of more samples than are kept, the shortest are") {
  RunOptions options = sums();
  const auto plain = period(options, {}, 1);
  options.rollout.rounds = {RoundMode::kTail, 1.0, 2.0};
  Fixture f(options);
  const auto batch = f.go_on(1);
  REQUIRE(batch);
  CHECK(batch->size() == 8);
  std::int64_t tokens = 0, plain_tokens = 0;
  for (const SampleSummary& s : batch->summaries()) tokens += s.response_tokens;
  for (const Trained& t : plain) plain_tokens += std::ssize(t.response);
  CHECK(tokens < plain_tokens);
}

TEST_CASE("rounds of tail batching go on until enough groups can teach") {
  RunOptions options = sums();
  options.dynamic.on = true;
  options.dynamic.max_rounds = 4;
  options.rollout.rounds = {RoundMode::kTail, 1.5, 1.0};
  Fixture f(options);
  const auto batch = f.go_on(1);
  REQUIRE(batch);
  CHECK(batch->groups.rounds > 1);  // or there was nothing to test
  CHECK(std::ssize(f.rollouts.reports()) == batch->groups.rounds);
  CHECK(batch->size() == 8);
}

TEST_CASE("in a second pass over a file, prompts are put off for what they were in the first") {
  const TestRanks all;
  const Scratch scratch;
  const std::string file = (scratch / "prompts.jsonl").string();
  if (all.ranks.rank() == 0) {
    std::ofstream out(file);
    for (int i = 0; i < 12; ++i)
      out << R"({"prompt": ")" << i << " + " << i * 7 << R"( = ", "ground_truth": ")" << i * 8
          << "\"}\n";
  }
  barrier(all.ranks.world());
  RunOptions options = sums();
  options.data.task = "";
  options.data.prompts = {file};
  options.rule = RewardRule::kExact;
  options.rollout.rounds = {RoundMode::kPredicted, 1.5, 1.0};
  Fixture f(options);
  std::vector<RoundKind> kinds;
  std::multiset<std::int64_t> trained;
  for (int n = 1; n <= 6; ++n) {
    const auto batch = f.go_on(n);
    REQUIRE(batch);
    CHECK(batch->size() == 8);
    const RoundReport& round = f.rollouts.reports().front();
    kinds.push_back(round.kind);
    CHECK((round.aborted == 0 && round.unkept_tokens == 0));
    const auto stream = f.rollouts.stream();
    trained.insert(stream.begin(), stream.end());
    f.rollouts.advance();
  }
  using enum RoundKind;
  CHECK(kinds == std::vector<RoundKind>{kPlain, kPlain, kPlain, kShort, kShort, kLong});
  CHECK(trained.size() == 24);
  CHECK((trained.count(0) == 1 && trained.count(23) == 1));
  CHECK(f.rollouts.waiting() == 0);
}

TEST_CASE("an iteration that is not finished is begun again where it began") {
  RunOptions options = sums();
  options.rollout.rounds = {RoundMode::kTail, 1.5, 1.0};
  Fixture f(options);
  const auto first = f.go_on(1), again = f.go_on(1);
  REQUIRE((first && again));
  CHECK(texts(*first) == texts(*again));
  f.rollouts.advance();
  StateInfo state;
  f.rollouts.add_state(state);
  CHECK(!state.rounds.empty());
  CHECK(state.prompt_batches == 2);  // the first of which is not whole
  Fixture other(options);
  other.rollouts.set_state(state);
  const auto next = f.go_on(2), resumed = other.go_on(2);
  REQUIRE((next && resumed));
  CHECK(trained(f, *next, 0) == trained(other, *resumed, 0));
}

TEST_CASE("a generation that was asked to stop gives nothing") {
  Fixture f(sums());
  StopRequest request;
  request.set_deadline(0.0);
  CHECK(!f.collect(1, 0, &request));
}
