// SPDX-License-Identifier: Apache-2.0
#include "data/PreferenceData.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

std::vector<PreferenceItem> read(const Scratch& scratch, const std::string& text) {
  spill(scratch / "pairs.jsonl", text);
  return read_preference_data(scratch / "pairs.jsonl");
}

}  // namespace

TEST_CASE("pairs in all their forms") {
  const Scratch scratch;
  const auto items = read(scratch, R"({"prompt": "1+1=", "chosen": "2", "rejected": "3"}

{"prompt": "1+1=", "chosen": [{"role": "assistant", "content": "2"}], "rejected": "3", "margin": 0.5}
{"prompt": [{"role": "user", "content": "q"}], "chosen": [{"role": "assistant", "content": "a"}], "rejected": [{"role": "assistant", "content": "b"}]}
{"messages": [{"role": "user", "content": "q"}], "chosen": "a", "rejected": "b"}
{"chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}]}
{"prompt_tokens": [1, 2], "chosen_tokens": [3], "rejected_tokens": [4, 5]}
)");
  REQUIRE(items.size() == 6);
  for (const int i : {0, 1}) {
    CHECK(items[i].chosen.form == PromptForm::kText);
    CHECK(items[i].chosen.prompt == "1+1=");
    CHECK(items[i].chosen.response == "2");
    CHECK(items[i].rejected.prompt == "1+1=");
    CHECK(items[i].rejected.response == "3");
  }
  CHECK(items[0].margin == 0.0);
  CHECK(items[1].margin == 0.5);
  CHECK(items[1].line == 3);
  for (const int i : {2, 3, 4}) {
    INFO(i);
    REQUIRE(items[i].chosen.chat.messages.size() == 2);
    CHECK(items[i].chosen.form == PromptForm::kMessages);
    CHECK(items[i].chosen.chat.messages[0].content == "q");
    CHECK(items[i].chosen.chat.messages[1].content == "a");
    CHECK(items[i].chosen.first_answer == 1);
    CHECK(items[i].rejected.chat.messages[1].content == "b");
  }
  CHECK(items[5].chosen.prompt_tokens == std::vector<int>{1, 2});
  CHECK(items[5].chosen.response_tokens == std::vector<int>{3});
  CHECK(items[5].rejected.response_tokens == std::vector<int>{4, 5});
}

TEST_CASE("what is wrong with a pair is told with file and line") {
  const Scratch scratch;
  struct Case {
    const char *line, *problem;
  };
  const Case cases[] = {
      {R"({"prompt": "p", "chosen": "a", "rejected": )", "not valid JSON"},
      {R"({"prompt": "p", "chosen": "a"})", "'rejected' is missing"},
      {R"({"prompt": "p", "rejected": "a"})", "'chosen' is missing"},
      {R"({"prompt": "p", "chosen": null, "rejected": "a"})", "'chosen' is missing"},
      {R"({"prompt_tokens": [1], "chosen_tokens": [2]})", "'rejected_tokens' is missing"},
      {R"({"chosen_tokens": [2], "rejected_tokens": [3]})", "'prompt_tokens' is missing"},
      {R"({"prompt": "p", "chosen": "a", "rejected": "a"})", "the same"},
      {R"({"prompt_tokens": [1], "chosen_tokens": [2], "rejected_tokens": [2]})", "the same"},
      {R"({"prompt": "p", "chosen": "", "rejected": "a"})", "'chosen' is empty"},
      {R"({"prompt": "p", "chosen": "a", "rejected": ""})", "'rejected' is empty"},
      {R"({"prompt": "p", "chosen": "a", "rejected": 3})", "'rejected' is 3"},
      {R"({"prompt": "p", "chosen": "a", "rejected": [{"role": "user", "content": "b"}]})",
       "one message of the assistant"},
      {R"({"chosen": "a", "rejected": "b"})", "without a 'prompt'"},
      {R"({"chosen": [{"role": "user", "content": "b"}], "rejected": "b"})", "does not end"},
      {R"({"prompt": "p", "messages": [], "chosen": "a", "rejected": "b"})", "more than one kind"},
      {R"({"prompt": "p", "chosen": "a", "rejected": "b", "margin": "x"})", "'margin' is \"x\""},
  };
  const std::string good = R"({"prompt": "p", "chosen": "a", "rejected": "b"})";
  for (const Case& c : cases) {
    INFO(c.line);
    CHECK_THROWS_MATCHES(
        read(scratch, good + "\n" + c.line + "\n"), Error,
        MessageMatches(ContainsSubstring("pairs.jsonl:2") && ContainsSubstring(c.problem)));
  }
  CHECK_THROWS_MATCHES(read(scratch, "\n"), Error,
                       MessageMatches(ContainsSubstring("no preference pairs")));
}
