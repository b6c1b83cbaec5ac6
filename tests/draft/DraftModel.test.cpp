// SPDX-License-Identifier: Apache-2.0
#include "draft/DraftModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "comm/Collectives.hpp"
#include "draft/GuessDrafter.hpp"
#include "engine/EngineRun.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// A draft model with an arena of its own.
struct TestDraft {
  TestDraft(GoldenModel& m, const EngineOptions& options)
      : memory(EngineMemory::of(m.table, m.parallel, options)),
        arena(TestEngine::plan(m, options)),
        layout{&*m.view, &m.parallel, options},
        model(m.exec, layout, memory, arena, MemoryPhase::kAlways,
              ConstFloatMatrix(m.rope.data(), kPositions, m.config.head_dim)) {}

  EngineMemory memory;
  Arena arena;
  EngineSetup layout;
  DraftModel model;
};

struct Drafted {
  Generation generation;
  std::int64_t drafted = 0, accepted = 0;
  DraftCounts counts;
};

// A generation of `policy` with drafts of `draft`, on the ranks that each of them has; counts of
// all ranks.
Drafted generate_with(GoldenModel& policy, GoldenModel& draft, const EngineOptions& draft_options,
                      const SamplingOptions& o, const std::vector<Request>& requests,
                      int draft_length) {
  const Group& world = policy.parallel.group();
  TestEngine test(policy, roomy(policy));
  TestDraft drafts(draft, draft_options);
  GuessDrafter drafter(draft_length, 0);
  drafter.set_model(&drafts.model);
  drafter.begin(o, world, {});
  test.engine.set_drafter(&drafter);
  test.engine.begin(o, some_stops());
  for (const Request& r : requests) test.engine.submit(r);
  Drafted all;
  while (!test.engine.idle()) {
    const StepReport report = test.engine.step();
    all.drafted += report.drafted_rows;
    all.accepted += report.accepted;
    for (Completion& c : test.engine.take_completions())
      all.generation.responses[c.id] = std::move(c);
  }
  all.counts = drafter.finish();
  all_reduce_sum(world, all.counts.acceptance.counts());
  std::int64_t& by_model = all.counts.sources[static_cast<int>(DraftSource::kModel)].drafted;
  std::vector<std::int64_t> sum{by_model};
  all_reduce_sum(world, sum);
  by_model = sum[0];
  return all;
}

std::int64_t drafted_by_model(const Drafted& d) {
  return d.counts.sources[static_cast<int>(DraftSource::kModel)].drafted;
}

}  // namespace

TEST_CASE("the policy as its own draft model guesses every token") {
  const Group group = world(), self = Group::self();
  GoldenModel m("llama_a", group), alone("llama_a", self);
  const auto requests = mixed_requests(m, 8, 30);
  for (const float temperature : {0.0f, 1.0f}) {
    const Generation plain = generate(m, roomy(m), sampling(temperature), some_stops(), requests);
    for (GoldenModel* draft : {&m, &alone}) {
      const Drafted d = generate_with(m, *draft, roomy(m), sampling(temperature), requests, 4);
      INFO("temperature " << temperature << ", draft on " << draft->parallel.group().size()
                          << " ranks");
      CHECK(difference(plain, d.generation) == "");
      CHECK(drafted_by_model(d) > 0);
      const RightOf right = d.counts.acceptance.of(DraftSource::kModel);
      CHECK(right.right == right.all);
      CHECK(right.all > 0);
    }
  }
}

TEST_CASE("another draft model changes no bit, and one without room drafts nothing") {
  const Group group = world(), self = Group::self();
  GoldenModel m("llama_a", group), other("llama_c", group), alone("llama_c", self);
  REQUIRE(other.config.vocab >= m.config.vocab);
  const auto requests = mixed_requests(m, 8, 30);
  EngineOptions options = roomy(other);
  options.valid_ids = m.config.vocab;
  for (const float temperature : {0.0f, 0.7f}) {
    SamplingOptions o = sampling(temperature);
    o.repetition_penalty = temperature == 0.0f ? 1.2f : 1.0f;
    const Generation plain = generate(m, roomy(m), o, some_stops(), requests);
    for (GoldenModel* draft : {&other, &alone}) {
      const Drafted d = generate_with(m, *draft, options, o, requests, 3);
      CHECK(difference(plain, d.generation) == "");
      CHECK(d.accepted < d.drafted);
      CHECK(drafted_by_model(d) > 0);
    }
    options.kv_blocks = 0;
    const Drafted none = generate_with(m, other, options, o, requests, 3);
    CHECK(difference(plain, none.generation) == "");
    CHECK(drafted_by_model(none) == 0);
    options.kv_blocks = roomy(other).kv_blocks;
  }
}

TEST_CASE("what drafts have left in the cache does not show") {
  const Group self = Group::self();
  GoldenModel m("qwen2_a", self);
  EngineOptions options = roomy(m);
  options.scheduler.max_step_rows = 24;
  options.scheduler.max_running = 4;
  TestDraft used(m, options), fresh(m, options);
  const SamplingOptions o = sampling(1.0f);
  std::vector<Sequence> sequences(3);
  for (int i = 0; i < 3; ++i) {
    sequences[i].id = {i, 0};
    sequences[i].tokens = random_prompt(i, 50 + 30 * i, m.config.vocab);
    sequences[i].prompt_length = sequences[i].length();
  }
  const auto same = [](const DrawnToken& a, const DrawnToken& b) {
    return a.id == b.id && std::memcmp(&a.log_prob, &b.log_prob, sizeof a.log_prob) == 0;
  };
  for (int step = 0; step < 40; ++step) {
    std::vector<std::vector<std::int32_t>> drafts(3);
    std::vector<DraftContext> contexts;
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < (step + i) % 4; ++k) drafts[i].push_back((step * 7 + k * 11 + i) % 64);
      if ((step + i) % 5 != 0) contexts.push_back({&sequences[i], drafts[i]});
    }
    const auto drawn = used.model.draw(contexts, o);
    fresh.model.keep({});
    const auto again = fresh.model.draw(contexts, o);
    REQUIRE(drawn.size() == contexts.size());
    for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(same(drawn[i], again[i]));
    // Some drafts are right, others are not.
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k <= step % 3; ++k)
        sequences[i].tokens.push_back(k < std::ssize(drafts[i]) && step % 2 == 0 ? drafts[i][k]
                                                                                 : step % 60);
  }
  used.model.rebind(used.layout);
  const std::vector<DraftContext> contexts{{&sequences[1], {}}};
  fresh.model.keep({});
  CHECK(same(used.model.draw(contexts, o)[0], fresh.model.draw(contexts, o)[0]));
}

TEST_CASE("samples of a prompt share its blocks, and the drafts are the same") {
  const Group self = Group::self();
  GoldenModel m("qwen2_a", self);
  EngineOptions options = roomy(m);
  options.kv_blocks = 2 + 3;  // the prompt, and the last block of each sample
  options.scheduler.max_step_rows = 60;
  TestDraft draft(m, options), alone(m, options);
  std::vector<Sequence> samples(3);
  std::vector<DraftContext> contexts;
  for (int k = 0; k < 3; ++k) {
    samples[k].id = {4, k};
    samples[k].tokens = random_prompt(4, 130, m.config.vocab);
    samples[k].prompt_length = 130;
    samples[k].tokens.push_back(k);
    contexts.push_back({&samples[k], {}});
  }
  const SamplingOptions o = sampling(1.0f);
  const auto check = [&] {
    const auto drawn = draft.model.draw(contexts, o);
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      alone.model.keep({});
      const auto expected = alone.model.draw(std::span(&contexts[i], 1), o)[0];
      REQUIRE(drawn[i].id >= 0);
      CHECK(drawn[i].id == expected.id);
      CHECK(drawn[i].log_prob == expected.log_prob);
    }
  };
  check();
  CHECK(draft.model.rows_read() == 131 + 2 * 3);
  for (int k = 0; k < 3; ++k) samples[k].tokens.push_back(7);
  check();
  CHECK(draft.model.rows_read() == 3);
  // Whoever has read the prompt may leave; the last one gives it back.
  draft.model.keep(std::vector<DraftAsk>{{&samples[2], 1}});
  contexts = {contexts[2]};
  samples[2].tokens.push_back(9);
  check();
  draft.model.keep({});
  Sequence other = samples[0];
  other.id = {5, 0};
  other.tokens.resize(5 * 64, 1);
  CHECK(draft.model.draw(std::vector<DraftContext>{{&other, {}}}, o)[0].id >= 0);
  CHECK(draft.model.rows_read() == 5 * 64);
}

TEST_CASE("sequences that are over give their blocks back, and what is read is told") {
  const Group self = Group::self();
  GoldenModel m("qwen2_a", self);
  EngineOptions options = roomy(m);
  options.kv_blocks = 3;
  TestDraft draft(m, options);
  std::vector<Sequence> sequences(6);
  for (int i = 0; i < 6; ++i) {
    sequences[i].id = {i, 0};
    sequences[i].tokens = random_prompt(i, 100, m.config.vocab);  // two blocks
    sequences[i].prompt_length = 100;
  }
  for (const Sequence& s : sequences) {
    draft.model.keep(std::vector<DraftAsk>{{&s, 4}});
    const std::vector<std::int32_t> guess{7};
    CHECK(draft.model.draw(std::vector<DraftContext>{{&s, {}}}, sampling(1.0f))[0].id >= 0);
    CHECK(draft.model.rows_read() == 100);
    CHECK(draft.model.draw(std::vector<DraftContext>{{&s, guess}}, sampling(1.0f))[0].id >= 0);
    CHECK(draft.model.rows_read() == 1);
  }
  // The last one is still there: with another one, there is no room.
  const std::vector<DraftContext> two{{&sequences[5], {}}, {&sequences[0], {}}};
  const auto drawn = draft.model.draw(two, sampling(1.0f));
  CHECK(drawn[0].id >= 0);
  CHECK(drawn[1].id < 0);
}
