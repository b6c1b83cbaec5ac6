// SPDX-License-Identifier: Apache-2.0
#include "tune/ExitJob.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <set>

#include "checkpoint/Pieces.hpp"
#include "checkpoint/WriteExits.hpp"
#include "comm/Collectives.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

constexpr int kFirst = 20, kIds = 60;

void add_sequence(ScoreInput& input, const std::vector<std::int32_t>& prompt,
                  const std::vector<std::int32_t>& response) {
  auto& sequence = input.sequences.emplace_back(prompt);
  sequence.insert(sequence.end(), response.begin(), response.end());
  input.prompt_lengths.push_back(static_cast<int>(prompt.size()));
}

// 100 responses of 40 tokens, each of which tells the next one, but for five rare ones: fewer than
// a rank collects in a round.
ScoreInput regular_responses() {
  ScoreInput input;
  for (int i = 0; i < 100; ++i) {
    std::vector<std::int32_t> response;
    for (int k = 0; k < 40; ++k)
      response.push_back(k == 20 && i < 5 ? 300 + i : kFirst + (7 * i + 11 * k) % kIds);
    add_sequence(input, {5, 6, 7}, response);
  }
  return input;
}

std::vector<std::int32_t> regular_ids() {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < kIds; ++i) ids.push_back(kFirst + i);
  return ids;
}

struct Fixture : TestRanks {
  explicit Fixture(int tp = 1) : TestRanks({tp}) {
    options.layers = {1};
    options.vocabulary = kIds;
    options.rate = 3e-3;
    options.type = WeightType::kF32;
    options.tp = tp;
    options.max_tokens = 256;
  }
  double run(const ScoreInput& responses, const std::string& output) {
    return ExitJob(options, files, responses, scratch / output, ranks).run();
  }
  ExitFiles made(const std::string& output) const { return {scratch / output, "--output", files}; }

  Scratch scratch;
  ModelFiles files{TAPER_GOLDEN_DIR "/models/llama_a"};
  ExitOptions options;
};

std::vector<float> first_rows(const ModelFiles& head) {
  return read_piece(head, head.open_weights(), 0);
}

}  // namespace

TEST_CASE("exits learn the responses of a model, more of them in more passes") {
  const ScoreInput responses = regular_responses();
  for (const int tp : std::set<int>{1, world_size()}) {
    INFO("tensor-parallel degree " << tp);
    Fixture f(tp);
    const double once = f.run(responses, "once");
    f.options.passes = 4;
    const double often = f.run(responses, "often");
    CHECK(once > 0.0);
    CHECK(once < std::log(static_cast<double>(kIds)));  // less than knowing nothing
    CHECK(often < 0.9 * once);

    // What is written has learned, too.
    if (f.ranks.rank() == 0) write_exits(f.files, {1}, regular_ids(), f.scratch / "new");
    barrier(f.ranks.world());
    const ExitFiles before = f.made("new"), after = f.made("once"), later = f.made("often");
    for (const ExitFiles* files : {&after, &later}) {
      CHECK(files->layers() == std::vector<int>{1});
      CHECK(files->ids() == regular_ids());
    }
    const auto rows = first_rows(before.heads().front()),
               once_rows = first_rows(after.heads().front()),
               often_rows = first_rows(later.heads().front());
    CHECK((once_rows != rows));
    CHECK((often_rows != once_rows));
  }
}

TEST_CASE("exits know the ids that are most frequent in responses, of equals the lowest") {
  ScoreInput responses;
  add_sequence(responses, {100, 100, 100, 100, 100}, {9, 50, 9, 50, 7, 30});
  add_sequence(responses, {100, 8}, {9, 30, 50, 7, 9, 8});
  Fixture f;
  f.options.type = WeightType::kBf16;
  f.options.vocabulary = 3;
  f.run(responses, "three");
  CHECK(f.made("three").ids() == std::vector<std::int32_t>{7, 9, 50});
  f.options.vocabulary = 2048;
  f.run(responses, "all");
  CHECK(f.made("all").ids() == std::vector<std::int32_t>{7, 8, 9, 30, 50});
}

TEST_CASE("layers that the model has not are refused") {
  Fixture f;
  const ScoreInput responses = regular_responses();
  const auto says = [&](const std::vector<int>& layers, const std::string& text) {
    f.options.layers = layers;
    CHECK_THAT(
        message_of([&] { ExitJob(f.options, f.files, responses, f.scratch / "exits", f.ranks); }),
        ContainsSubstring("--layers is " + text + " (") && ContainsSubstring("has 2 layers") &&
            ContainsSubstring("in this order"));
  };
  says({}, "");
  says({0}, "0");
  says({2}, "2");
  says({1, 1}, "1, 1");
  CHECK_FALSE(fs::exists(f.scratch / "exits"));
}

// The ranks of a group share rows out one by one: here the first one has room for no more behind a
// micro-batch, and the others have (2 * 4096 - 1 rows of two ranks).
TEST_CASE("ranks of a group pass over the same micro-batches, whichever of them is full") {
  ScoreInput responses;
  const auto add_response = [&](int length) {
    std::vector<std::int32_t> response;
    for (int k = 0; k < length; ++k) response.push_back(kFirst + k % kIds);
    add_sequence(responses, {5}, response);
  };
  for (int i = 0; i < 64; ++i) add_response(127);
  add_response(63);
  add_response(127);
  Fixture f(world_size());
  f.options.max_tokens = 128;
  CHECK(f.run(responses, "exits") > 0.0);
  CHECK(f.made("exits").ids() == regular_ids());
}

TEST_CASE("a text of one token has nothing to learn from") {
  const TestRanks world;
  const Scratch scratch;
  ScoreInput responses;
  add_sequence(responses, {}, {5});
  add_sequence(responses, {}, {5, 9, 7, 9, 7});
  const TestRanks alone({1}, MPI_COMM_SELF, 1);
  ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_a");
  ExitOptions options;
  options.layers = {1};
  options.type = WeightType::kF32;
  const fs::path output = scratch / ("exits-" + std::to_string(world.ranks.rank()));
  CHECK(ExitJob(options, files, responses, output, alone.ranks).run() > 0.0);
}
