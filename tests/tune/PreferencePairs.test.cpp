// SPDX-License-Identifier: Apache-2.0
#include "tune/PreferencePairs.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "support/Messages.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const ModelFiles& model() {
  static const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_a");
  return files;
}

// Pair i: a prompt of i + 1 tokens, 10 + i chosen and 50 + i rejected.
std::string some_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    std::string prompt = "5";
    for (int k = 0; k < i; ++k) prompt += ", 5";
    text += "{\"prompt_tokens\": [" + prompt + "], \"chosen_tokens\": [" + std::to_string(10 + i) +
            "], \"rejected_tokens\": [" + std::to_string(50 + i) + "]}\n";
  }
  return text;
}

struct Fixture {
  Fixture() {
    spill(scratch / "a.jsonl", some_lines(9));
    options.data.files = {(scratch / "a.jsonl").string()};
    options.batch_pairs = 4;
    options.epochs = 3;
  }
  PreferenceSource source() const { return {options, model(), 64}; }
  // The pairs of a file with that text.
  std::vector<TokenPair> read(const std::string& text, const PairLimits& limits = {64, 64}) const {
    spill(scratch / "b.jsonl", text);
    return read_pairs("Data/Files", {(scratch / "b.jsonl").string()}, options.data, model(),
                      limits);
  }

  Scratch scratch;
  RewardModelOptions options;
};

}  // namespace

TEST_CASE("a pair is the prompt with the chosen, and with the rejected response") {
  const Fixture f;
  const auto pairs = f.read(
      R"({"prompt_tokens": [5, 6], "chosen_tokens": [7, 2], "rejected_tokens": [8], "margin": 0.5})"
      "\n" +
      some_lines(1));
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].chosen == std::vector<std::int32_t>{5, 6, 7, 2});
  CHECK(pairs[0].rejected == std::vector<std::int32_t>{5, 6, 8});
  CHECK(pairs[0].margin == 0.5);
  CHECK(pairs[0].length() == 7);
  CHECK(pairs[1].chosen == std::vector<std::int32_t>{5, 10});
  CHECK(pairs[1].margin == 0.0);
}

TEST_CASE("each pass has every pair once, in an order of its own, and the run ends with them") {
  const Fixture f;
  const PreferenceSource source = f.source();
  CHECK(source.pairs() == 9);
  CHECK(source.steps_left(0, 0) == 7);  // 27 pairs, 4 at a time
  std::vector<std::vector<int>> passes(3);
  std::uint64_t next = 0;
  for (std::int64_t step = 0; step < 7; ++step) {
    std::uint64_t at = next;
    const auto batch = source.next_batch(next);
    REQUIRE(batch.size() == (step < 6 ? 4 : 3));
    for (const TokenPair& pair : batch) passes[at++ / 9].push_back(pair.chosen.back());
    CHECK(at == next);
    CHECK(source.steps_left(next, step + 1) == 6 - step);
  }
  CHECK(source.next_batch(next).empty());
  CHECK(source.epochs(next) == 3.0);
  for (const auto& pass : passes) CHECK(std::set<int>(pass.begin(), pass.end()).size() == 9);
  CHECK(passes[0] != passes[1]);
  CHECK(passes[1] != passes[2]);
}

TEST_CASE("by steps a run goes over the files as often as it takes, in their order if wanted") {
  Fixture f;
  f.options.epochs = 0;
  f.options.steps = 5;
  f.options.data.shuffle = false;
  const PreferenceSource source = f.source();
  CHECK(source.steps_left(0, 0) == 5);
  CHECK(source.steps_left(16, 4) == 1);
  CHECK(source.steps_left(20, 5) == 0);
  std::uint64_t next = 0;
  for (int step = 0; step < 5; ++step)
    for (int i = 0; const TokenPair& pair : source.next_batch(next))
      CHECK(pair.rejected.back() == 50 + (4 * step + i++) % 9);
  CHECK(next == 20);
}

TEST_CASE("pairs of the held-out files are apart, in the order of the files") {
  Fixture f;
  spill(f.scratch / "c.jsonl", some_lines(3));
  f.options.data.validation_files = {(f.scratch / "c.jsonl").string(), f.options.data.files[0]};
  const PreferenceSource source = f.source();
  CHECK(source.pairs() == 9);
  REQUIRE(source.validation().size() == 12);
  CHECK(source.validation()[2].chosen.back() == 12);
  CHECK(source.validation()[3].chosen.back() == 10);
}

TEST_CASE("the fingerprint tells other pairs and another order") {
  Fixture f;
  const std::uint64_t first = f.source().fingerprint();
  f.options.batch_pairs = 2;  // does not change what a position gives
  CHECK(f.source().fingerprint() == first);
  f.options.data.shuffle = false;
  CHECK(f.source().fingerprint() != first);
  f.options.data.shuffle = true;
  spill(
      f.scratch / "a.jsonl",
      some_lines(8) + R"({"prompt_tokens": [5], "chosen_tokens": [18], "rejected_tokens": [58]})");
  const std::uint64_t other = f.source().fingerprint();
  CHECK(other != first);
  spill(f.scratch / "a.jsonl", some_lines(8) + R"({"prompt_tokens": [5], "chosen_tokens": [18], )"
                                               R"("rejected_tokens": [58], "margin": 1})");
  CHECK(f.source().fingerprint() != other);
}

TEST_CASE("pairs that are too long are left out unless they are to stop the run") {
  Fixture f;
  CHECK(f.read(some_lines(9), {5, 64}).size() == 4);   // sides of 2, 3, 4, 5 tokens
  CHECK(f.read(some_lines(9), {64, 12}).size() == 5);  // pairs of 4, 6, 8, 10, 12
  CHECK_THAT(message_of([&] {
               f.read(some_lines(9), {1, 64});
             }),
             ContainsSubstring("b.jsonl") && ContainsSubstring("all pairs are too long"));
  f.options.data.over_long = OverLong::kStop;
  CHECK_THAT(message_of([&] {
               f.read(some_lines(9), {64, 12});
             }),
             ContainsSubstring("b.jsonl:6: the pair has 14 tokens (12 at most)"));
  CHECK_THAT(message_of([&] {
               f.read(some_lines(9), {5, 64});
             }),
             ContainsSubstring("b.jsonl:5: the prompt with the chosen response has 6 tokens"));
  f.options.data.over_long = OverLong::kDrop;
  f.options.data.max_length = 5;  // of a side
  CHECK(f.source().pairs() == 4);
}

TEST_CASE("a file that is not there and a pair of equal responses are named") {
  Fixture f;
  CHECK_THAT(message_of([&] {
               f.read(some_lines(1) + R"({"prompt_tokens": [5], "chosen_tokens": [6],)"
                                      R"( "rejected_tokens": [6]})");
             }),
             ContainsSubstring("b.jsonl:2"));
  f.options.data.files = {(f.scratch / "missing.jsonl").string()};
  CHECK_THAT(message_of([&] { f.source(); }),
             ContainsSubstring("Data/Files") && ContainsSubstring("missing.jsonl"));
}
