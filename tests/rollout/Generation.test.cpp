// SPDX-License-Identifier: Apache-2.0
#include "rollout/Generation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/Messages.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using taper::test::message_of;

namespace {

const std::string kWithTokenizer = TAPER_DATA_DIR "/model";
const std::string kWithout = TAPER_GOLDEN_DIR "/models/llama_a";

}  // namespace

TEST_CASE("a response ends with the model's end of sequence, for which no tokenizer is needed") {
  const ModelFiles files(kWithout);
  REQUIRE(files.config.eos_ids == std::vector<int>{2});
  const StopOptions stops = stop_options(files, {});
  CHECK(stops.ids == std::vector<std::int32_t>{2});
  CHECK(stops.strings.empty());
  CHECK(stops.token_bytes.empty());
}

TEST_CASE("stop strings are found in the bytes of all tokens that can be sampled") {
  const ModelFiles files(kWithTokenizer);
  const StopOptions stops = stop_options(files, {"5 = "});
  CHECK(std::ssize(stops.token_bytes) == files.valid_ids());
  const StopMatcher matcher(stops);
  const std::vector<int> ids = files.tokenizer().encode("2 + 5 = 7", AddSpecial::kNo);
  std::vector<std::int32_t> response;
  std::string text;
  for (const int id : ids) {
    response.push_back(id);
    text += stops.token_bytes[static_cast<std::size_t>(id)];
    const bool ended = text.find("5 = ") != std::string::npos;
    CHECK(matcher.check(response).has_value() == ended);
    if (ended) break;
  }
  CHECK_THAT(text, ContainsSubstring("2 + 5 = "));
}

TEST_CASE("stop strings need a tokenizer") {
  const ModelFiles files(kWithout);
  CHECK_THAT(message_of([&] { stop_options(files, {"end"}); }),
             ContainsSubstring("llama_a has no tokenizer.json"));
}

TEST_CASE("a sample has all that was generated, and nothing of a reward") {
  Completion c;
  c.ordinal = 7;
  c.sample = 2;
  c.prompt = {1, 4, 5};
  c.response = {6, 2};
  c.log_probs = {-0.5f, -0.25f};
  c.kept_mass = {1.0f, 0.75f};
  c.finish = FinishReason::kLength;
  c.spans = {{0, 1, 3}, {1, 2, 1}};
  const Sample s = as_sample(Completion(c));
  CHECK(s.ordinal == 7);
  CHECK(s.sample == 2);
  CHECK(s.prompt == c.prompt);
  CHECK(s.response == c.response);
  CHECK(s.log_probs == c.log_probs);
  CHECK(s.kept_mass == c.kept_mass);
  CHECK(s.finish == FinishReason::kLength);
  CHECK(s.spans == c.spans);
  CHECK(s.rewards.empty());
  CHECK(s.score == 0.0f);
  CHECK(s.advantages.empty());
  CHECK_FALSE(s.dropped);
}
