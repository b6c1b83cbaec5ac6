// SPDX-License-Identifier: Apache-2.0
#include "engine/ModelRunner.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "engine/EngineRun.hpp"

using namespace taper;
using namespace taper::test;

namespace {

struct TestRunner {
  TestRunner(GoldenModel& m, const EngineOptions& options)
      : arena(TestEngine::plan(m, options)),
        runner(m.exec, {&*m.view, &m.parallel, options},
               EngineMemory::of(m.table, m.parallel, options), arena, MemoryPhase::kAlways,
               ConstFloatMatrix(m.rope.data(), kPositions, m.config.head_dim)) {}

  Arena arena;
  ModelRunner runner;
};

}  // namespace

TEST_CASE("tokens are those of their row, however a sequence is cut and whoever is beside it") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  EngineOptions options = roomy(m);
  options.logit_rows = 3;
  TestRunner whole(m, options), parts(m, options);
  const std::vector<std::int32_t> tokens = random_prompt(1, 100, m.config.vocab),
                                  other = random_prompt(2, 30, m.config.vocab);
  Staged<std::int32_t> blocks, other_blocks;
  blocks.push_back(5);
  blocks.push_back(2);
  other_blocks.push_back(7);
  const std::span<const std::int32_t> all = tokens;
  const SamplingOptions o = sampling(1.0f);
  const auto draw = [&](TestRunner& test, const std::vector<Chunk>& chunks,
                        const std::vector<DrawRow>& rows) {
    StepExchange exchange(m.parallel.group(), 0);
    return test.runner.draw(rows, test.runner.forward(chunks), o, exchange);
  };
  // Five rows in two chunks of logits; the first has two samples.
  std::vector<DrawRow> rows;
  for (int i = 0; i < 4; ++i) rows.push_back({96 + i, {3, 1}, i == 0 ? 2 : 1, all.first(97 + i)});
  rows.push_back({129, {4, 0}, 1, other});
  const auto expected =
      draw(whole, {{blocks.data(), 0, all}, {other_blocks.data(), 0, other}}, rows);
  REQUIRE(expected.size() == 6);
  CHECK(expected[0].log_prob <= 0.0f);
  parts.runner.forward(std::vector<Chunk>{{blocks.data(), 0, all.first(70)}});
  parts.runner.exec().fence();
  rows.pop_back();
  for (DrawRow& row : rows) row.row -= 70;
  const auto again = draw(parts, {{blocks.data(), 70, all.subspan(70)}}, rows);
  REQUIRE(again.size() == 5);
  for (std::size_t i = 0; i < again.size(); ++i) {
    CHECK(again[i].id == expected[i].id);
    CHECK(std::memcmp(&again[i].log_prob, &expected[i].log_prob, sizeof(float)) == 0);
  }
}
