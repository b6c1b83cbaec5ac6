// SPDX-License-Identifier: Apache-2.0
#include "infer/LoadedGenerator.hpp"

#include <catch2/catch_test_macros.hpp>

#include "comm/Collectives.hpp"
#include "infer/ScoredModels.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("lengths and sequences in flight are fitted to the prompts and the context") {
  ModelFiles files(model_directory("llama_a"));
  const TestRanks world({1});
  GenerateOptions options;
  options.max_new_tokens = 8;
  const int context = files.config.max_positions;
  const LoadedGenerator some(options, files, {world_size(), 20}, world.ranks);
  CHECK(some.max_positions() == 28);
  CHECK(LoadedGenerator(options, files, {1, context - 3}, world.ranks).max_positions() == context);
  // Memory is for as many sequences as a replica will have.
  const LoadedGenerator more(options, files, {9 * world_size(), 20}, world.ranks);
  CHECK(more.memory_plan().total() > some.memory_plan().total());
}

TEST_CASE("the generator is ready where it is used") {
  ModelFiles files(model_directory("llama_a"));
  const TestRanks world({1});
  LoadedGenerator model({}, files, {2, 3}, world.ranks);
  std::vector<std::int64_t> ended{0};
  model.use([&](Generator& generator) {
    std::vector<Request> requests(2);
    for (int i = 0; i < 2; ++i) {
      requests[i].first.prompt = i;
      requests[i].prompt = {5, 9, 7 + i};
      requests[i].max_new_tokens = 4;
    }
    ended.front() = std::ssize(generator.run(requests, {}, {}));
  });
  all_reduce_sum(world.ranks.world(), ended);
  CHECK(ended.front() == 2);
  CHECK(model.report().seconds > 0);
}
