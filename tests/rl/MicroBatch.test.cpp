// SPDX-License-Identifier: Apache-2.0
#include "rl/MicroBatch.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "base/Error.hpp"
#include "base/Random.hpp"

using namespace taper;

TEST_CASE("samples are shared out completely and evenly, whatever the number of replicas") {
  RandomStream random(5, RandomPurpose::kTest, 0, 0);
  for (const int count : {1, 7, 64, 300}) {
    std::vector<int> lengths;
    for (int i = 0; i < count; ++i) lengths.push_back(static_cast<int>(random.between(1, 400)));
    const int longest = *std::max_element(lengths.begin(), lengths.end());
    for (const int dp : {1, 2, 3, 8}) {
      std::vector<int> seen;
      std::vector<std::int64_t> load;
      for (int r = 0; r < dp; ++r) {
        const auto mine = assign_samples(lengths, dp, r);
        CHECK(std::is_sorted(mine.begin(), mine.end()));
        seen.insert(seen.end(), mine.begin(), mine.end());
        load.push_back(0);
        for (const int i : mine) load.back() += lengths[i];
      }
      std::sort(seen.begin(), seen.end());
      std::vector<int> all(count);
      std::iota(all.begin(), all.end(), 0);
      CHECK(seen == all);
      CHECK(*std::max_element(load.begin(), load.end()) -
                *std::min_element(load.begin(), load.end()) <=
            longest);
    }
  }
}

TEST_CASE("replicas get samples by their speeds") {
  std::vector<int> lengths;
  RandomStream random(4, RandomPurpose::kTest, 0, 0);
  for (int i = 0; i < 200; ++i) lengths.push_back(static_cast<int>(random.between(20, 60)));
  CHECK(assign_replicas(lengths, 3, {kSpeedOne, kSpeedOne, kSpeedOne}) ==
        assign_replicas(lengths, 3));
  const ReplicaSpeeds speeds{kSpeedOne, kSpeedOne / 2, kSpeedOne / 4};
  const auto replica = assign_replicas(lengths, 3, speeds);
  std::vector<double> time(3, 0.0);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    time[replica[i]] += static_cast<double>(lengths[i]) * kSpeedOne / speeds[replica[i]];
  // All are done within the time that the slowest takes for one sample.
  const auto [least, most] = std::minmax_element(time.begin(), time.end());
  CHECK(*most - *least <= 60.0 * 4);
  // One sample goes to the fastest.
  CHECK(assign_replicas({5}, 2, {kSpeedOne / 2, kSpeedOne}) == std::vector{1});
}

TEST_CASE("of a sequence any stretches may be targets") {
  const std::vector<std::int32_t> tokens{10, 11, 12, 13, 14, 15};
  PackedSamples pair, ranges;
  pair.add(std::vector<std::int32_t>{10, 11}, std::vector<std::int32_t>{12, 13, 14, 15});
  ranges.add(tokens, std::vector<Range>{{2, 6}});
  CHECK(ranges.sequences.ids == pair.sequences.ids);
  CHECK(ranges.sequences.lengths == pair.sequences.lengths);
  CHECK(ranges.rows == pair.rows);
  CHECK(ranges.targets == pair.targets);
  ranges.add(tokens, std::vector<Range>{{1, 2}, {4, 5}});  // rows go on after the first sequence
  CHECK(ranges.sequences.lengths == std::vector<int>{5, 5});
  CHECK(ranges.rows == std::vector<int>{1, 2, 3, 4, 5, 8});
  CHECK(ranges.targets == std::vector<std::int32_t>{12, 13, 14, 15, 11, 14});
}

TEST_CASE("mini-batches keep the samples of a prompt together") {
  const std::vector<int> ends{4, 8, 9, 12, 16};
  const auto cuts = [&](int parts) {
    std::vector<int> ends_of_parts;
    for (const Range part : cut_mini_batches(ends, parts)) ends_of_parts.push_back(part.end);
    return ends_of_parts;
  };
  CHECK(cuts(1) == std::vector<int>{16});
  CHECK(cuts(2) == std::vector<int>{9, 16});
  CHECK(cuts(9) == ends);
  CHECK(cut_mini_batches({}, 3).size() == 1);
}

TEST_CASE("micro-batches keep the order and their limits") {
  const auto batches = cut_micro_batches({5, 5, 5, 9, 1, 1, 1, 10}, 10, 3);
  CHECK(batches == std::vector<std::vector<int>>{{0, 1}, {2}, {3, 4}, {5, 6}, {7}});
  CHECK(cut_micro_batches({1, 1, 1, 1}, 10, 3).size() == 2);
  CHECK(cut_micro_batches({}, 10, 3).empty());
  CHECK_THROWS_AS(cut_micro_batches({11}, 10, 3), Error);
}

TEST_CASE("packed rows predict the response tokens, and the last token is no input") {
  PackedSamples packed;
  const std::vector<std::int32_t> p1{1, 2, 3}, r1{4, 5}, p2{6}, r2{7};
  packed.add(p1, r1);
  packed.add(p2, r2);
  CHECK(packed.sequences.ids == std::vector<std::int32_t>{1, 2, 3, 4, 6});
  CHECK(packed.sequences.lengths == std::vector<int>{4, 1});
  CHECK(packed.rows == std::vector<int>{2, 3, 4});
  CHECK(packed.targets == std::vector<std::int32_t>{4, 5, 7});
}

TEST_CASE("samples that follow one another share their prompt but for its last token") {
  const std::vector<std::int32_t> p1{1, 2, 3}, r1{4, 5}, r2{6}, r3{7, 8, 9}, p2{1, 2, 4}, p3{6};
  PackedSamples packed;
  packed.shares_prompts = true;
  for (const auto& [prompt, response] :
       std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>>{
           {p1, r1}, {p1, r2}, {p1, r3}, {p2, r2}, {p3, r2}, {p3, r3}, {p1, r1}})
    packed.add(prompt, response);
  CHECK(packed.sequences.ids ==
        std::vector<std::int32_t>{1, 2, 3, 4, 3, 3, 7, 8, 1, 2, 4, 6, 6, 7, 8, 1, 2, 3, 4});
  CHECK(packed.sequences.lengths == std::vector<int>{4, 1, 3, 3, 1, 3, 4});
  CHECK(packed.sequences.shared == std::vector<int>{0, 2, 2, 0, 0, 0, 0});
  CHECK(packed.rows == std::vector<int>{2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 17, 18});
  CHECK(packed.sequences.positions() == 4 + 3 + 5 + 3 + 1 + 3 + 4);
}

TEST_CASE("micro-batches of all ranks together have every sequence once, and those of a rank") {
  const std::vector<int> lengths{5, 9, 1, 7, 7, 3, 8};
  TrainPassOptions pass;
  pass.max_rows = 12;
  pass.max_sequences = 2;
  std::vector<int> seen(lengths.size(), 0);
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<int> mine;
    for (const auto& batch : micro_batches_of(lengths, 3, rank, pass)) {
      int rows = 0;
      for (const int i : batch) {
        rows += lengths[i];
        ++seen[i];
        mine.push_back(i);
      }
      CHECK(rows <= 12);
      CHECK(batch.size() <= 2);
    }
    CHECK(mine == assign_samples(lengths, 3, rank));
  }
  CHECK(seen == std::vector<int>(lengths.size(), 1));
}

TEST_CASE("bundles have equal numbers of rows, of which shared tokens are none") {
  TrainPassOptions pass;
  pass.max_rows = 200;
  pass.bundle_tokens = 60;
  // Four prompts of 40 tokens with five samples each, then four samples of 50 that share nothing.
  SequenceSizes sizes;
  for (int i = 0; i < 20; ++i) sizes.add(45, i % 5 > 0 ? 40 : 0);
  for (int i = 0; i < 4; ++i) sizes.add(50, 0);
  const auto bundles = cut_bundles(sizes, pass);
  for (const auto& [begin, end] : bundles) {
    int rows = 0, tokens = 0;
    for (int i = begin; i < end; ++i) {
      rows += i == begin ? sizes.tokens[i] : sizes.rows[i];
      tokens += sizes.tokens[i];
    }
    CHECK((rows <= pass.bundle_tokens && tokens <= pass.max_rows));
  }
  const auto replica = deal(sizes, 2, pass);
  std::vector<int> rows(2);
  for (int i = 0; i < sizes.count(); ++i) rows[replica[i]] += sizes.rows[i];
  CHECK(std::abs(rows[0] - rows[1]) <= 60);
}

TEST_CASE("bundles are cut by lengths alone, and each is on one rank") {
  TrainPassOptions pass;
  pass.max_rows = 12;
  pass.max_sequences = 3;
  pass.bundle_tokens = 10;
  const std::vector<int> lengths{5, 5, 3, 9, 12, 1, 1, 1, 1, 10};
  const auto bundles = cut_bundles(lengths, pass);
  for (const int ranks : {1, 2, 3, 7, 20}) {
    std::vector<std::vector<int>> found;
    for (int rank = 0; rank < ranks; ++rank)
      for (const auto& bundle : micro_batches_of(lengths, ranks, rank, pass)) {
        for (const int i : bundle) CHECK(deal(lengths, ranks, pass)[i] == rank);
        found.push_back(bundle);
      }
    std::sort(found.begin(), found.end());
    REQUIRE(found.size() == bundles.size());
    for (std::size_t b = 0; b < bundles.size(); ++b) {
      CHECK(found[b].front() == bundles[b].begin);
      CHECK(found[b].back() == bundles[b].end - 1);
    }
  }
  pass.max_rows = 40;  // room does not matter
  CHECK(cut_bundles(lengths, pass).size() == bundles.size());
  pass.max_rows = 11;
  CHECK_THROWS_AS(cut_bundles(lengths, pass), Error);
  CHECK(cut_bundles({}, pass).empty());
}

TEST_CASE("bundles are within their limits, and can be shared out evenly") {
  RandomStream random(6, RandomPurpose::kTest, 0, 0);
  TrainPassOptions pass;
  pass.bundle_tokens = 512;
  pass.max_sequences = 20;
  for (const int count : {1, 3, 40, 500}) {
    std::vector<int> lengths;
    for (int i = 0; i < count; ++i) lengths.push_back(static_cast<int>(random.between(10, 60)));
    int next = 0;
    for (const Range bundle : cut_bundles(lengths, pass)) {
      CHECK(bundle.begin == next);
      CHECK(bundle.size() <= 20);
      const int tokens =
          std::accumulate(lengths.begin() + bundle.begin, lengths.begin() + bundle.end, 0);
      CHECK(tokens <= 512);
      next = bundle.end;
    }
    CHECK(next == count);
  }
  // As many equal sequences as fit into two and a half bundles become four, not three.
  CHECK(cut_bundles(std::vector<int>(64, 20), pass).size() == 4);
}

TEST_CASE("whole sequences are packed with the rows of their last tokens") {
  PackedEnds packed;
  const std::vector<std::int32_t> prompt{1, 2, 3}, response{4, 5};
  packed.add(prompt, response);
  packed.add(response);
  CHECK(packed.sequences.ids == std::vector<std::int32_t>{1, 2, 3, 4, 5, 4, 5});
  CHECK(packed.sequences.lengths == std::vector<int>{5, 2});
  CHECK(packed.rows == std::vector<int>{4, 6});
}
