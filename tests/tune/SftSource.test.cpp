// SPDX-License-Identifier: Apache-2.0
#include "tune/SftSource.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;

namespace {

const ModelFiles& model() {
  static const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_a");
  return files;
}

// Example i: a prompt of i + 1 tokens and one to learn, 10 + i.
std::string some_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    std::string prompt = "5";
    for (int k = 0; k < i; ++k) prompt += ", 5";
    text += "{\"prompt_tokens\": [" + prompt + "], \"tokens\": [" + std::to_string(10 + i) + "]}\n";
  }
  return text;
}

struct Fixture {
  Fixture() {
    spill(scratch / "a.jsonl", some_lines(9));
    options.data.files = {(scratch / "a.jsonl").string()};
    options.batch_tokens = 12;
    options.epochs = 3;
  }
  SftSource source() const { return {options, model(), 64}; }

  Scratch scratch;
  SftOptions options;
};

}  // namespace

TEST_CASE("each pass has every example once, in an order of its own, and the run ends with them") {
  const Fixture f;
  const SftSource source = f.source();
  std::vector<std::vector<int>> passes(3);
  std::uint64_t next = 0;
  std::int64_t steps = 0;
  const std::int64_t all = source.steps_left(0, 0);
  for (; source.steps_left(next, steps) > 0; ++steps) {
    CHECK(source.steps_left(next, steps) == all - steps);
    int tokens = 0;
    std::uint64_t at = next;
    const auto batch = source.next_batch(next);
    REQUIRE(!batch.empty());
    for (const TokenExample& e : batch) {
      CHECK(tokens < 12);
      tokens += e.length();
      passes[at++ / 9].push_back(e.tokens.back());
    }
    CHECK((tokens >= 12 || next == 27));
  }
  CHECK(steps == all);
  CHECK(source.epochs(next) == 3.0);
  for (const auto& pass : passes)
    CHECK(std::map<int, int>([&] {
            std::map<int, int> seen;
            for (const int id : pass) ++seen[id];
            return seen;
          }())
              .size() == 9);
  CHECK(passes[0] != passes[1]);
  CHECK(passes[1] != passes[2]);
  std::uint64_t again = 0;
  source.next_batch(again);  // looking back changes nothing
  CHECK(again > 0);
}

TEST_CASE("without shuffling examples come as they stand in the files") {
  Fixture f;
  spill(f.scratch / "b.jsonl", "{\"prompt_tokens\": [1], \"tokens\": [300]}\n");
  f.options.data.files.push_back((f.scratch / "b.jsonl").string());
  f.options.data.shuffle = false;
  f.options.batch_tokens = 1000;
  f.options.epochs = 1;
  std::uint64_t next = 0;
  const auto batch = f.source().next_batch(next);
  REQUIRE(batch.size() == 10);
  for (int i = 0; i < 9; ++i) CHECK(batch[i].tokens.back() == 10 + i);
  CHECK(batch[9].tokens.back() == 300);
}

TEST_CASE("the fingerprint tells other examples") {
  Fixture f;
  const std::uint64_t first = f.source().fingerprint();
  CHECK(f.source().fingerprint() == first);
  f.options.batch_tokens = 7;  // does not change what a position gives
  CHECK(f.source().fingerprint() == first);
  f.options.data.max_length = 5;
  CHECK(f.source().fingerprint() != first);
  f.options.data.max_length = 0;
  spill(f.scratch / "a.jsonl", some_lines(9) + some_lines(1));
  CHECK(f.source().fingerprint() != first);
}

TEST_CASE("by steps a run goes over the files as often as it takes") {
  Fixture f;
  f.options.epochs = 0;
  f.options.steps = 40;
  const SftSource source = f.source();
  CHECK(source.steps_left(0, 0) == 40);
  CHECK(source.steps_left(123, 39) == 1);
  CHECK(source.steps_left(123, 45) == 0);
  std::uint64_t next = 0;
  for (int i = 0; i < 40; ++i) source.next_batch(next);
  CHECK(source.epochs(next) > 3.0);
}
