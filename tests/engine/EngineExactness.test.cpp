// SPDX-License-Identifier: Apache-2.0
//
// The exactness contract (doc/numerics.md) of whole generations: the same tokens and the same bits
// of their log-probs however they were batched, cached, cut, sharded or recomputed, and the same as
// those of the training forward pass.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "engine/EngineRun.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Models that can be sharded over all ranks.
std::vector<std::string> models_for(const Group& group) {
  std::vector<std::string> names;
  for (const auto& name : {"llama_b", "qwen2_a", "qwen3_a"}) {
    const ParamTable table(read_model_config(golden_dir(name)));
    if (group.size() <= std::min({table.config().heads, table.mlp_blocks(), table.vocab_blocks()}))
      names.push_back(name);
  }
  return names;
}

// Every sample by itself: one sequence at a time, prompts read whole, nothing shared, one rank.
Generation alone(const std::string& name, const SamplingOptions& o,
                 const std::vector<Request>& requests, WeightType type = WeightType::kF32,
                 const Precision& precision = {}) {
  const Group self = Group::self();
  GoldenModel m(name, self, type, {.precision = precision});
  EngineOptions options = roomy(m);
  options.scheduler = {1, kPositions, 64};
  options.logit_rows = 1;
  std::vector<Request> single;
  for (const Request& r : requests)
    for (int k = 0; k < r.samples; ++k) {
      single.push_back(r);
      single.back().first.sample = r.first.sample + k;
      single.back().samples = 1;
    }
  return generate(m, options, o, some_stops(), single);
}

}  // namespace

TEST_CASE("batch sizes, prefill chunks and logit chunks change no bit") {
  const Group group = world();
  for (const auto& name : models_for(group)) {
    INFO(name);
    GoldenModel m(name, group);
    const auto requests = mixed_requests(m, 24, 40);
    const Generation reference = alone(name, sampling(0.7f), requests);
    REQUIRE(static_cast<int>(reference.responses.size()) == responses_of(requests));
    REQUIRE(reference.most_running == 1);
    struct Case {
      int max_running, max_step_rows, logit_rows;
    };
    for (const Case c :
         {Case{1, 1, 1}, Case{1, 7, 3}, Case{2, 2, 64}, Case{3, 64, 2}, Case{7, 7, 64},
          Case{16, 256, 5}, Case{33, 100, 64}, Case{64, 64, 64}, Case{64, 256, 64}}) {
      if (group.size() > 1 && c.max_running < 7)
        continue;  // many steps; the larger batches cross the same code
      INFO("max_running " << c.max_running << ", max_step_rows " << c.max_step_rows
                          << ", logit_rows " << c.logit_rows);
      EngineOptions o = roomy(m);
      o.scheduler.max_running = c.max_running;
      o.scheduler.max_step_rows = c.max_step_rows;
      o.logit_rows = c.logit_rows;
      const Generation g = generate(m, o, sampling(0.7f), some_stops(), requests);
      CHECK(difference(reference, g).empty());
      CHECK(g.most_running <= c.max_running);
      CHECK(g.largest_step <= c.max_step_rows);
      if (c.max_running == 64) CHECK(g.most_running > 40);  // the large batch was one
    }
  }
}

TEST_CASE("no batch size from 1 to 64 changes a bit") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  std::vector<Request> requests;
  for (int i = 0; i < 64; ++i)
    requests.push_back({{i, 0}, 1, random_prompt(i, 1 + i % 5, m.config.vocab), 4});
  const Generation reference = alone("llama_b", sampling(0.7f), requests);
  for (int size = 1; size <= 64;
       size += group.size()) {  // more ranks, fewer sizes: steps are slower
    INFO("batch size " << size);
    EngineOptions o = roomy(m);
    o.scheduler.max_running = size;
    const Generation g = generate(m, o, sampling(0.7f), some_stops(), requests);
    CHECK(difference(reference, g).empty());
    CHECK(g.most_running <= size);
    CHECK(g.most_running >=
          std::min(size, 48));  // short prompts end early, so 64 never run at once
  }
}

TEST_CASE("what else is in the batch changes no bit") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  const auto requests = mixed_requests(m, 20, 32);
  const Generation all = generate(m, roomy(m), sampling(1.0f), some_stops(), requests);
  for (int part = 0; part < 3; ++part) {
    std::vector<Request> some;
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (static_cast<int>(i * i) % 3 == part % 2 || static_cast<int>(i) % 4 == part)
        some.push_back(requests[i]);
    std::reverse(some.begin(), some.end());  // the order of submission does not matter either
    const Generation g = generate(m, roomy(m), sampling(1.0f), some_stops(), some);
    Generation expected;
    for (const auto& [key, c] : g.responses) expected.responses[key] = all.responses.at(key);
    CHECK(static_cast<int>(g.responses.size()) == responses_of(some));
    CHECK(difference(expected, g).empty());
  }
}

TEST_CASE("requests that arrive in the middle of a generation change no bit") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  const auto requests = mixed_requests(m, 12, 32);
  const Generation all = generate(m, roomy(m), sampling(1.0f), some_stops(), requests);
  TestEngine test(m, roomy(m));
  test.engine.begin(sampling(1.0f), some_stops());
  Generation late;
  for (const Request& r : requests) {
    test.engine.submit(r);
    for (int i = 0; i < 3; ++i) test.engine.step();
  }
  late = drain(test.engine);
  CHECK(difference(all, late).empty());
}

TEST_CASE("samples of a prompt are the same shared and submitted one by one") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  auto requests = mixed_requests(m, 16, 24);
  for (Request& r : requests) r.samples = 4;
  std::vector<Request> apart;
  for (const Request& r : requests)
    for (int k = 3; k >= 0; --k) {
      apart.push_back(r);
      apart.back().first.sample = k;
      apart.back().samples = 1;
    }
  const Generation shared = generate(m, roomy(m), sampling(1.0f), some_stops(), requests);
  const Generation single = generate(m, roomy(m), sampling(1.0f), some_stops(), apart);
  CHECK(difference(shared, single).empty());
  CHECK(single.prefill_rows ==
        4 * shared.prefill_rows);  // each prompt was read once, not four times
  // More samples than slots are read in groups.
  EngineOptions few = roomy(m);
  few.scheduler.max_running = 3;
  CHECK(difference(shared, generate(m, few, sampling(1.0f), some_stops(), requests)).empty());
}

TEST_CASE("a cache with 30 % of the need preempts and changes no bit") {
  const Group group = world();
  for (const auto& name : models_for(group)) {
    INFO(name);
    GoldenModel m(name, group);
    const auto requests = mixed_requests(m, 24, 90);
    int need = 0, longest = 0;
    for (const Request& r : requests) {
      const int blocks = (static_cast<int>(r.prompt.size()) + r.max_new_tokens + 63) / 64;
      need += blocks * r.samples;
      longest = std::max(longest, blocks);
    }
    // One long response that fills the cache alone, and the others with hardly an end before their
    // limit.
    const StopOptions stops{{2}, {}, {}};
    const Generation reference = generate(m, roomy(m), sampling(0.7f), stops, requests);
    REQUIRE(reference.preemptions == 0);
    for (const int blocks : {need * 3 / 10, need / 10, longest}) {
      INFO(blocks << " of " << need << " blocks");
      EngineOptions o = roomy(m);
      o.kv_blocks = blocks;
      const Generation g = generate(m, o, sampling(0.7f), stops, requests);
      CHECK(difference(reference, g).empty());
      CHECK((g.preemptions > 0) == (group.rank() == 0));  // the leader counts
      CHECK(g.prefill_rows > reference.prefill_rows);     // recomputed
    }
  }
}

TEST_CASE("log-probs are those of the training forward pass") {
  const Group group = world();
  for (const auto& name : models_for(group)) {
    for (const auto type : {WeightType::kF32, WeightType::kBf16}) {
      GoldenModel m(name, group, type);
      const auto requests = mixed_requests(m, 18, 40);
      for (const float temperature : {0.0f, 0.7f, 1.0f}) {
        INFO(name << (type == WeightType::kBf16 ? ", bf16" : ", f32") << ", temperature "
                  << temperature);
        EngineOptions o = roomy(m);
        o.scheduler.max_step_rows = 100;
        const Generation g = generate(m, o, sampling(temperature), some_stops(), requests);
        CHECK(g.tokens > 500);
        CHECK(training_differences(m, g, temperature > 0 ? temperature : 1.0f) == 0);
        if (temperature == 0.7f) {
          CHECK(training_differences(m, g, 1.0f) > 100);  // the comparison can fail
          if (group.size() > 1)
            CHECK(difference(alone(name, sampling(temperature), requests, type), g).empty());
        }
      }
    }
  }
}

#if !defined(TAPER_CUDA)
TEST_CASE(
    "arithmetics and caches of bf16 have the same bits for any layout, and in the training pass") {
  const Group group = world();
  for (const Precision& precision :
       {Precision{Arithmetic::kF32, KvType::kBf16}, Precision{Arithmetic::kBf16, KvType::kF32},
        Precision{Arithmetic::kBf16Dot, KvType::kF32},
        Precision{Arithmetic::kBf16Dot, KvType::kBf16}})
    for (const auto& name : models_for(group)) {
      INFO(name << ", arithmetic " << static_cast<int>(precision.arithmetic)
                << (precision.kv_type == KvType::kBf16 ? " over a cache of bf16" : ""));
      GoldenModel m(name, group, WeightType::kBf16, {.precision = precision});
      const auto requests = mixed_requests(m, 30, 24);
      EngineOptions o = roomy(m);
      o.scheduler.max_step_rows = 100;
      const Generation g = generate(m, o, sampling(1.0f), some_stops(), requests);
      CHECK(g.tokens > 300);
      CHECK(training_differences(m, g, 1.0f) == 0);
      CHECK(difference(alone(name, sampling(1.0f), requests, WeightType::kBf16, precision), g)
                .empty());
      CHECK_FALSE(difference(alone(name, sampling(1.0f), requests, WeightType::kBf16), g).empty());
    }
}
#endif

TEST_CASE("truncated sampling has the same bits for any layout, and the training pass agrees") {
  const Group group = world();
  for (const auto& name : models_for(group)) {
    INFO(name);
    GoldenModel m(name, group);
    const auto requests = mixed_requests(m, 12, 24);
    SamplingOptions o = sampling(1.5f);
    o.top_k = 50;
    o.top_p = 0.9f;
    o.min_p = 0.01f;
    const Generation g = generate(m, roomy(m), o, some_stops(), requests);
    CHECK(difference(alone(name, o, requests), g).empty());
    CHECK(training_differences(m, g, 1.5f) == 0);
    double least = 1;
    for (const auto& [key, c] : g.responses)
      for (const float mass : c.kept_mass) least = std::min<double>(least, mass);
    CHECK(least < 0.9);
    CHECK(least > 0.0);
  }
}

TEST_CASE("a repetition penalty has the same bits for any layout and cache") {
  const Group group = world();
  for (const auto& name : models_for(group)) {
    INFO(name);
    GoldenModel m(name, group);
    const auto requests = mixed_requests(m, 8, 40);
    for (const float temperature : {0.0f, 0.8f}) {
      SamplingOptions o = sampling(temperature);
      o.repetition_penalty = 1.4f;
      if (temperature > 0) o.top_p = 0.9f;
      const Generation reference = alone(name, o, requests);
      CHECK(difference(generate(m, roomy(m), o, some_stops(), requests), reference).empty());
      EngineOptions small = roomy(m);
      small.kv_blocks = 5;
      small.scheduler.max_step_rows = 70;
      const Generation g = generate(m, small, o, some_stops(), requests);
      CHECK((g.preemptions > 0) == (group.rank() == 0));  // the leader counts
      CHECK(difference(g, reference).empty());
      SamplingOptions without = o;
      without.repetition_penalty = 1.0f;
      CHECK(!difference(alone(name, without, requests), reference).empty());
    }
  }
}
