// SPDX-License-Identifier: Apache-2.0
#include "engine/EngineSizing.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "model/GoldenModel.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::int64_t kPositions = 100;  // two blocks of 64 to a sequence

EngineOptions options_of(const GoldenModel& m, const EngineSizing& sizing) {
  return engine_options(sizing, {kPositions, m.config.vocab, "KV Memory MB"}, m.config, m.parallel);
}

// Bytes of a block on the rank of the group that holds the most KV heads: keys and values of 64
// positions in all layers, f32. If the group has no more ranks than KV heads.
std::int64_t block_bytes(const GoldenModel& m) {
  const int ranks = m.parallel.group().size();
  const int heads = (m.config.kv_heads + ranks - 1) / ranks;
  return std::int64_t{2} * 4 * 64 * m.config.layers * heads * m.config.head_dim;
}

double mb(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1048576.0;
}

}  // namespace

TEST_CASE("an engine has blocks for all sequences in flight, and one to spare") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const GoldenModel m("llama_b", world);
  const EngineOptions o = options_of(m, {3, 40, 64.0});
  CHECK(o.scheduler.max_running == 3);
  CHECK(o.scheduler.max_step_rows == 40);
  CHECK(o.max_positions == kPositions);
  CHECK(o.valid_ids == m.config.vocab);
  CHECK(o.kv_blocks == 2 * 3 + 1);
}

TEST_CASE("logits of all rows of a step are held at a time, of at most 64") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const GoldenModel m("llama_b", world);
  CHECK(options_of(m, {3, 40, 64.0}).logit_rows == 40);
  CHECK(options_of(m, {80, 100, 64.0}).logit_rows == 64);
}

TEST_CASE("memory limits the blocks, and less than one sequence needs is refused") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const GoldenModel m("llama_b", world);
  CHECK(options_of(m, {50, 256, mb(5 * block_bytes(m))}).kv_blocks == 5);
  CHECK(options_of(m, {50, 256, mb(3 * block_bytes(m))}).kv_blocks == 3);
  CHECK_THROWS_MATCHES(options_of(m, {50, 256, mb(2 * block_bytes(m))}), Error,
                       MessageMatches(ContainsSubstring("KV Memory MB") &&
                                      ContainsSubstring("one sequence of 100 tokens")));
}
