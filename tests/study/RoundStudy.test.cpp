// SPDX-License-Identifier: Apache-2.0
#include "study/RoundStudy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <string>

#include "support/synthetic_profile.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

// Every eighth prompt has long responses.
int some_long(std::int64_t number, int sample) {
  return (number % 8 == 3 ? 900 : 20) + sample;
}

RoundSetting setting_of(const ResponseLength& length) {
  RoundSetting setting;
  setting.prompts = 8;
  setting.samples = 4;
  setting.work.max_new_tokens = 1024;
  setting.prompt_tokens = 16;
  setting.length = length;
  setting.iterations = 5;
  setting.long_tokens = 512;
  setting.degrees = {1, 2};
  setting.chain = DivisorChain::of(2);
  return setting;
}

std::map<std::string, RoundResult> studied(const RoundSetting& setting) {
  const SimulatedMachine machine(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  std::map<std::string, RoundResult> results;
  for (const RoundResult& r : study_rounds(setting, machine)) results.emplace(r.name, r);
  return results;
}

}  // namespace

TEST_CASE("rounds that choose prompts gain where few are long, and train as many long ones") {
  const auto results = studied(setting_of(some_long));
  const RoundResult &plain = results.at("plain"), &tail = results.at("1.25");
  CHECK((plain.iterations == 5 && tail.iterations == 5 && results.at("1.5").iterations == 3));
  CHECK(plain.responses == 5 * 32);
  CHECK(tail.responses == plain.responses);
  CHECK(plain.long_responses == 5 * 4);
  // A period: four short rounds without long responses, and one that has the five of its prompts.
  CHECK(tail.long_responses == 5 * 4);
  CHECK(plain.generated == plain.trained);
  CHECK(tail.generated > tail.trained);
  CHECK(tail.static_ns < plain.static_ns);
  CHECK(tail.adaptive_ns < plain.adaptive_ns);
  CHECK(results.at("by price").static_ns < plain.static_ns);
  CHECK(!results.contains("published"));
}

TEST_CASE("what is known of a stream is all that is played") {
  RoundSetting setting = setting_of(some_long);
  setting.stream = 2 * 5 * 8;  // plain rounds to learn from, and as many to count
  CHECK(studied(setting).contains("1.25"));
  setting.stream -= 1;
  CHECK(studied(setting).empty());  // nothing to compare with
}

TEST_CASE("more samples, and responses drawn again, are played where they are known") {
  RoundSetting setting = setting_of(some_long);
  setting.has_more_samples = true;
  setting.redrawn = [](std::int64_t, int) { return 20; };  // never long again
  const auto results = studied(setting);
  CHECK(results.at("1.25, samples 1.25").long_responses == 5 * 4);
  CHECK(results.at("published").long_responses == 0);
}

TEST_CASE("the table compares with plain rounds") {
  RoundResult plain{"plain", 2, 4'000'000'000, 2'000'000'000, 100, 100, 10, 1};
  RoundResult tail{"1.25", 2, 2'000'000'000, 1'000'000'000, 150, 100, 10, 2};
  const std::string rows = round_rows("law", std::vector{plain, tail});
  CHECK_THAT(rows, ContainsSubstring("law"));
  CHECK_THAT(rows, ContainsSubstring("1.00 s   2.00x     0.50 s   2.00x     1.50x   20.0%"));
}
