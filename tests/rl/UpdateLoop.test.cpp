// SPDX-License-Identifier: Apache-2.0
//
// Micro-batches; the loop itself is tested by those who learn in it (PolicyTrainer, CriticTrainer).
#include "rl/UpdateLoop.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"

using namespace taper;

namespace {

Sample sample(int prompt, int response) {
  Sample s;
  s.prompt.assign(prompt, 1);
  s.response.assign(response, 2);
  return s;
}

}  // namespace

TEST_CASE("micro-batches have each sample once, in order, and the rows that say its tokens") {
  const std::vector<Sample> samples{sample(3, 2), sample(1, 1), sample(9, 9), sample(2, 4),
                                    sample(1, 3)};
  const std::vector<int> mine{0, 1, 3, 4};
  TrainPassOptions options;
  options.max_rows = 5;
  std::vector<int> seen;
  int batches = 0;
  const MicroBatchList list = list_micro_batches(samples, mine, options);
  for_each_micro_batch(samples, list, options, [&](const MicroBatch& batch) {
    ++batches;
    CHECK(batch.packed.sequences.rows() <= 5);
    REQUIRE(batch.packed.sequences.lengths.size() == batch.samples.size());
    std::size_t tokens = 0;
    for (const int i : batch.samples) tokens += samples[i].response.size();
    CHECK(batch.packed.rows.size() == tokens);
    CHECK(batch.packed.targets.size() == tokens);
    seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
  });
  CHECK(seen == mine);
  CHECK(batches == 3);  // 4 + 1, 5, 3 rows: the last token of a sample is no input
}

TEST_CASE("a sample that fits no micro-batch is an error, and no samples are no micro-batches") {
  TrainPassOptions options;
  options.max_rows = 5;
  const std::vector<Sample> samples{sample(5, 2)};
  CHECK_THROWS_AS(list_micro_batches(samples, std::vector<int>{0}, options), Error);
  CHECK(list_micro_batches(samples, {}, options).empty());
}
