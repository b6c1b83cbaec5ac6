// SPDX-License-Identifier: Apache-2.0
#include "engine/Engine.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <list>
#include <set>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "engine/EngineRun.hpp"

using namespace taper;
using namespace taper::test;

namespace {

bool fits(const std::string& name, const Group& group) {
  const ParamTable table(read_model_config(golden_dir(name)));
  return group.size() <= std::min({table.config().heads, table.mlp_blocks(), table.vocab_blocks()});
}

SamplingOptions greedy() {
  SamplingOptions o;
  o.temperature = 0.0f;
  return o;
}

Request request(std::vector<std::int32_t> prompt, int max_new_tokens, std::int64_t ordinal = 0,
                int samples = 1) {
  return {{ordinal, 0}, samples, std::move(prompt), max_new_tokens};
}

// The message of the Error that f throws, with its exit code in front; empty if it throws none.
template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::to_string(static_cast<int>(e.code())) + ": " + e.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The error of a generation after one value of each of some units of a tensor was set to `value`.
std::string error_with(const Group& group, ParamRole role, int layer, std::vector<int> units,
                       float value) {
  GoldenModel m("llama_b", group);
  const int tensor = m.table.index_of(role, layer);
  for (const auto& piece : m.local.pieces())
    for (const int unit : units)
      if (piece.id == m.table.first_piece(tensor) + unit) m.values[piece.offset] = value;
  m.pack();
  TestEngine test(m, roomy(m));
  test.engine.begin({}, {});
  test.engine.submit(request({1, 5, 9}, 10));
  return error_of([&] { drain(test.engine); });
}

}  // namespace

TEST_CASE("greedy responses equal those of transformers") {
  const Group group = world();
  for (const auto& name : kGoldenModels) {
    if (!fits(name, group)) continue;
    INFO(name);
    GoldenModel m(name, group);
    const PackedSequences s = m.sequences();
    std::vector<std::int32_t> expected;
    for (const auto id : m.read<std::int64_t>("greedy"))
      expected.push_back(static_cast<std::int32_t>(id));
    const std::vector<std::int32_t> prompt(s.ids.begin(), s.ids.begin() + s.lengths[0]);
    const StopOptions stops{{m.config.eos_ids.begin(), m.config.eos_ids.end()}, {}, {}};
    const Generation g = generate(m, roomy(m), greedy(), stops,
                                  {request(prompt, static_cast<int>(expected.size()), 0, 3)});
    REQUIRE(g.responses.size() == 3);
    for (const auto& [key, c] : g.responses) {
      CHECK(c.response == expected);
      CHECK(c.finish == FinishReason::kLength);
    }
  }
}

TEST_CASE("samples depend on their key only") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  const auto prompt = random_prompt(0, 20, m.config.vocab);
  const auto run = [&](const SamplingOptions& o, const std::vector<Request>& requests) {
    return generate(m, roomy(m), o, {}, requests);
  };
  SamplingOptions o;
  o.seed = 5;
  const Generation twice = run(o, {request(prompt, 24, 0, 2), request(prompt, 24, 1, 2)});
  std::set<std::vector<std::int32_t>> distinct;
  for (const auto& [key, c] : twice.responses) distinct.insert(c.response);
  CHECK(distinct.size() == 4);  // neither samples nor ordinals repeat
  CHECK(difference(twice, run(o, {request(prompt, 24, 1, 2), request(prompt, 24, 0, 2)})).empty());
  SamplingOptions seed = o, iteration = o, evaluation = o;
  seed.seed = 6;
  iteration.iteration = 1;
  evaluation.purpose = RandomPurpose::kEvaluation;
  for (const auto& other : {seed, iteration, evaluation})
    CHECK(run(other, {request(prompt, 24)}).responses.at({0, 0}).response !=
          twice.responses.at({0, 0}).response);
}

TEST_CASE("prompts with keys of their own draw what others would") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  const auto prompt = random_prompt(0, 20, m.config.vocab);
  SamplingOptions o = sampling(1.0f);
  const auto plain = generate(m, roomy(m), o, {}, {request(prompt, 24, 7, 2)}).responses;
  o.keys = {{o.iteration + 1, 0}, {o.iteration, 7}};
  o.iteration += 5;
  const auto keyed =
      generate(m, roomy(m), o, {}, {request(prompt, 24, 0, 2), request(prompt, 24, 1, 2)})
          .responses;
  for (const int sample : {0, 1}) {
    CHECK(keyed.at({1, sample}).response == plain.at({7, sample}).response);
    CHECK(keyed.at({0, sample}).response != plain.at({7, sample}).response);
  }
}

TEST_CASE("responses that are given up end where they are, and change no others") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  EngineOptions options = roomy(m);
  options.scheduler.max_running = 7;  // some wait
  const std::vector<Request> requests = mixed_requests(m, 6, 40);
  const Generation whole = generate(m, options, sampling(1.0f), some_stops(), requests);
  TestEngine test(m, options);
  test.engine.begin(sampling(1.0f), some_stops());
  for (const Request& r : requests) test.engine.submit(r);
  Generation left;
  while (!test.engine.idle()) {
    test.engine.step();
    test.engine.abort([](const ResponseId& id, int length) {
      return id.prompt % 2 == 1 && length >= 5 + id.sample;
    });
    for (Completion& c : test.engine.take_completions()) left.responses[c.id] = std::move(c);
  }
  REQUIRE(left.responses.size() == whole.responses.size());
  int aborted = 0;
  for (const auto& [id, c] : left.responses) {
    const Completion& w = whole.responses.at(id);
    REQUIRE(c.response.size() <= w.response.size());
    CHECK(std::equal(c.response.begin(), c.response.end(), w.response.begin()));
    if (c.finish != FinishReason::kAbort) {
      CHECK(c.response.size() == w.response.size());
      continue;
    }
    ++aborted;
    CHECK(id.prompt % 2 == 1);
    CHECK(std::ssize(c.response) == 5 + id.sample);
    CHECK(c.log_probs.size() == c.response.size());
  }
  CHECK(aborted > 3);
  CHECK(test.engine.snapshot().finished == left.responses.size() - aborted);
  CHECK(test.engine.scheduler().blocks().free() == test.engine.scheduler().blocks().total());
}

TEST_CASE("responses end by id, by string, or at their limit") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  const auto prompt = random_prompt(1, 9, m.config.vocab);
  const auto response = [&](const StopOptions& stops, int limit) {
    return generate(m, roomy(m), greedy(), stops, {request(prompt, limit)}).responses.at({0, 0});
  };
  const Completion full = response({}, 20);
  CHECK(full.finish == FinishReason::kLength);
  REQUIRE(full.response.size() == 20);
  CHECK(full.log_probs.size() == 20);
  CHECK(full.kept_mass == std::vector<float>(20, 1.0f));
  CHECK(full.prompt == prompt);
  CHECK(response({}, 1).response == std::vector<std::int32_t>{full.response[0]});

  const std::int32_t id = full.response[7];
  const auto first =
      std::find(full.response.begin(), full.response.end(), id) - full.response.begin() + 1;
  const Completion by_id = response({{id}, {}, {}}, 20);
  CHECK(by_id.finish == FinishReason::kEos);
  CHECK(by_id.response ==
        std::vector<std::int32_t>(full.response.begin(), full.response.begin() + first));

  StopOptions strings;
  for (int i = 0; i < m.config.vocab; ++i)
    strings.token_bytes.push_back("<" + std::to_string(i) + ">");
  strings.strings = {"never", ">" + strings.token_bytes[full.response[5]].substr(0, 3)};
  const Completion by_string = response(strings, 20);
  CHECK(by_string.finish == FinishReason::kStop);
  CHECK(by_string.response.size() >= 2);
  CHECK(by_string.response.size() <= 6);
  CHECK(std::equal(by_string.response.begin(), by_string.response.end(), full.response.begin()));

  // At the end of the context, whatever was asked for.
  EngineOptions o = roomy(m);
  o.max_positions = 16;
  const Completion cut = generate(m, o, greedy(), {}, {request(prompt, 100)}).responses.at({0, 0});
  CHECK(cut.response.size() == 16 - prompt.size());
  CHECK(cut.finish == FinishReason::kLength);
}

TEST_CASE(
    "pinned samples end where they are told to, and only those cut at the limit count as cut") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  EngineOptions o = roomy(m);
  o.scheduler.max_running = 4;  // the samples are read in two groups
  SamplingOptions sampling;
  sampling.seed = 5;
  Request r = request(random_prompt(3, 70, m.config.vocab), 12, 0, 6);
  const Generation free = generate(m, o, sampling, {}, {r});
  r.pinned = {1, 12, 5, 30, 11, 2};
  const Generation g = generate(m, o, sampling, {}, {r});
  REQUIRE(g.responses.size() == 6);
  for (int k = 0; k < 6; ++k) {
    const Completion &c = g.responses.at({0, k}), &whole = free.responses.at({0, k});
    REQUIRE(c.response.size() == static_cast<std::size_t>(std::min(r.pinned[k], 12)));
    CHECK(std::equal(c.response.begin(), c.response.end(), whole.response.begin()));
    CHECK(c.finish == (r.pinned[k] < 12 ? FinishReason::kStop : FinishReason::kLength));
  }
}

TEST_CASE("samples that end at their first token leave nothing behind") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  TestEngine test(m, roomy(m));
  test.engine.begin({}, {});
  test.engine.submit(request(random_prompt(2, 70, m.config.vocab), 1, 7, 5));
  const Generation g = drain(test.engine);
  CHECK(g.responses.size() == 5);
  CHECK(g.steps == 1);
  CHECK(test.engine.scheduler().blocks().free() == roomy(m).kv_blocks);
}

TEST_CASE("snapshots and reports count what is there") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  EngineOptions o = roomy(m);
  o.scheduler.max_running = 3;
  TestEngine test(m, o);
  test.engine.begin({}, {});
  CHECK(test.engine.idle());
  for (int i = 0; i < 3; ++i)
    test.engine.submit(request(random_prompt(i, 10, m.config.vocab), 20 + i, i, 2));
  ReplicaSnapshot s = test.engine.snapshot();
  CHECK(s.running() == 0);
  CHECK(s.waiting == 6);
  CHECK(s.lengths[0] == 0);  // of the running only
  const StepReport first = test.engine.step();
  CHECK(first.prefill_rows == 10);
  CHECK(first.decode_rows == 0);
  CHECK(first.running == 2);
  CHECK(first.waiting == 4);
  CHECK(first.context == 20);
  for (int i = 0; i < 7; ++i) CHECK(test.engine.step().decode_rows == 2);
  s = test.engine.snapshot();
  CHECK(s.running() == 2);
  CHECK(s.longest == 18);
  CHECK(s.context == 34);
  CHECK(s.lengths[3] == 2);  // 8 tokens each
  CHECK(s.response == 16);
  CHECK(s.finished == 0);
  CHECK(test.engine.scheduler().blocks().free() == o.kv_blocks - 2);
  drain(test.engine);
  CHECK(test.engine.scheduler().blocks().free() == o.kv_blocks);
  CHECK(test.engine.snapshot().finished == 6);
  CHECK(test.engine.idle());
  // A second generation with the same engine.
  test.engine.begin(greedy(), {});
  test.engine.submit(request(random_prompt(0, 10, m.config.vocab), 5));
  CHECK(drain(test.engine).responses.size() == 1);
}

TEST_CASE("a snapshot of more sequences than it can count has the largest count") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  const EngineOptions o = roomy(m);
  TestEngine test(m, o);
  test.engine.begin({}, {});
  const auto counted = [&](int samples) {
    Sequence prompt;
    prompt.samples = samples;
    prompt.tokens = {1, 5, 9};
    prompt.prompt_length = 3;
    std::list<Sequence> running{prompt};
    running.emplace_back(prompt).samples = 2;
    test.engine.rebind({&*m.view, &m.parallel, o}, 0, running, {});
    return test.engine.snapshot().lengths[0];
  };
  CHECK(counted(1) == 3);
  CHECK(counted(65533) == 65535);
  CHECK(counted(65534) == 65535);
  CHECK(counted(70000) == 65535);
}

TEST_CASE("the word of rank 0 comes back on all ranks at the same step") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  EngineOptions o = roomy(m);
  o.scheduler = {4, 24, 64};  // some steps only read prompts
  SamplingOptions truncated;
  truncated.top_k = 3;
  TestEngine test(m, o);
  for (const SamplingOptions& sampling : {SamplingOptions(), greedy(), truncated}) {
    test.engine.begin(sampling, some_stops());
    for (const Request& r : mixed_requests(m, 6, 20)) test.engine.submit(r);
    std::uint64_t step = 0;
    int silent_steps = 0;
    for (int idle_steps = 0; idle_steps < 3; ++step) {
      idle_steps += test.engine.idle();  // a group without work still hears its leader
      const StepReport report =
          test.engine.step((step << 40) | static_cast<std::uint64_t>(group.rank()));
      CHECK(report.control == step << 40);
      const std::vector<std::int64_t> mine{report.decode_rows, report.prefill_rows, report.context,
                                           report.running, report.waiting};
      std::vector<std::int64_t> all(mine.size() * group.size());
      all_gather(group, all, mine);
      for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == mine[i % mine.size()]);
      silent_steps += report.prefill_rows == 24;
    }
    CHECK(step > 10);
    CHECK(silent_steps > 0);
  }
}

TEST_CASE("bad requests are refused and named") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  EngineOptions o = roomy(m);
  o.max_positions = 200;
  o.kv_blocks = 2;
  o.valid_ids = 300;
  TestEngine test(m, o);
  test.engine.begin({}, {});
  const auto refusal = [&](const Request& r) { return error_of([&] { test.engine.submit(r); }); };
  CHECK(contains(refusal(request({}, 5, 17)), "2: prompt 17 is empty"));
  CHECK(contains(refusal(request({1, 2, 300}, 5, 18)),
                 "2: prompt 18 has token id 300 (ids of this tokenizer are below 300)"));
  CHECK(contains(refusal(request({-1}, 5, 19)), "2: prompt 19 has token id -1"));
  CHECK(contains(refusal(request(random_prompt(0, 200, 300), 5, 20)),
                 "2: prompt 20 has 200 tokens (the context holds 200"));
  CHECK(contains(refusal(request(random_prompt(0, 100, 300), 29, 21)),
                 "100 + 29 tokens needs 3 KV blocks (the cache has 2)"));
  CHECK(contains(refusal(request({1}, 0, 22)), "2: prompt 22 "));
  CHECK(contains(refusal(request({1}, -3, 23)), "2: prompt 23 "));
  CHECK(contains(refusal(request({1}, 5, 24, 0)), "2: prompt 24 "));
  CHECK(refusal(request(random_prompt(0, 100, 300), 28, 25)).empty());
  CHECK(drain(test.engine).responses.size() == 1);  // the engine goes on after refusals
}

TEST_CASE("bad sampling options are refused with the reason") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  TestEngine test(m, roomy(m));
  const auto refusal = [&](auto change) {
    SamplingOptions o;
    change(o);
    return error_of([&] { test.engine.begin(o, {}); });
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(contains(refusal([](auto& o) { o.temperature = -0.1f; }), "2: sampling: temperature"));
  CHECK(contains(refusal([&](auto& o) { o.temperature = nan; }), "2: sampling: temperature"));
  CHECK(contains(refusal([](auto& o) { o.top_k = -1; }), "2: sampling: top_k"));
  CHECK(contains(refusal([](auto& o) { o.top_p = 0.0f; }), "2: sampling: top_p"));
  CHECK(contains(refusal([](auto& o) { o.top_p = 1.5f; }), "2: sampling: top_p"));
  CHECK(contains(refusal([&](auto& o) { o.top_p = nan; }), "2: sampling: top_p"));
  CHECK(contains(refusal([](auto& o) { o.min_p = 1.5f; }), "2: sampling: min_p"));
  CHECK(contains(refusal([](auto& o) { o.min_p = -0.5f; }), "2: sampling: min_p"));
  CHECK(refusal([](auto&) {}).empty());
}

TEST_CASE("weights that are not finite are noticed on all ranks, with the row") {
  const Group group = world();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string expected = "1: the logits of a token are not finite (row 2";
  CHECK(contains(error_with(group, ParamRole::kFinalNorm, -1, {0}, nan), expected));
  CHECK(contains(error_with(group, ParamRole::kDown, 1, {3}, nan), expected));
  CHECK(contains(error_with(group, ParamRole::kQuery, 0, {2}, nan), expected));
  CHECK(contains(error_with(group, ParamRole::kHead, -1, {1}, nan), expected));
  CHECK(contains(error_with(group, ParamRole::kHead, -1, {2}, INFINITY), expected));
}

// The integer weight of a NaN is -2^63, and two of them would cancel out.
TEST_CASE("two logits that are not numbers are noticed") {
  const Group group = world();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(contains(error_with(group, ParamRole::kHead, -1, {1, 3}, nan), "not finite"));
}
