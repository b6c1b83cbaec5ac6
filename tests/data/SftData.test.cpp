// SPDX-License-Identifier: Apache-2.0
#include "data/SftData.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/GoldenText.hpp"
#include "support/TemporaryFile.hpp"

namespace taper::testing {
TEST_CASE("examples in all their forms") {
  const TemporaryFile file(
      R"({"prompt": "1+1=", "response": "2", "ground_truth": "2"}

{"prompt": "1+1=", "completion": "2"}
{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}]}
{"prompt": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}], "completion": [{"role": "assistant", "content": "b"}]}
{"index": 0, "prompt_tokens": [1, 2], "tokens": [3], "text": "x"}
)");
  const auto items = read_sft_data(file.path());
  REQUIRE(items.size() == 5);
  for (const int i : {0, 1}) {
    CHECK(items[i].form == PromptForm::kText);
    CHECK(items[i].prompt == "1+1=");
    CHECK(items[i].response == "2");
  }
  CHECK(items[1].line == 3);
  CHECK(items[2].form == PromptForm::kMessages);
  CHECK(items[2].chat.messages.size() == 3);
  CHECK(items[2].first_answer == 0);
  REQUIRE(items[3].chat.messages.size() == 4);
  CHECK(items[3].chat.messages.back().role == "assistant");
  CHECK(items[3].chat.messages.back().content == "b");
  CHECK(items[3].first_answer == 3);
  CHECK(items[4].form == PromptForm::kTokens);
  CHECK(items[4].prompt_tokens == std::vector<int>{1, 2});
  CHECK(items[4].response_tokens == std::vector<int>{3});
}

TEST_CASE("what is wrong with an example is told with file, line and a way out") {
  struct Case {
    const char *line, *problem, *advice;
  };
  const Case cases[] = {
      {"{\"prompt\": ", "not valid JSON", "one object per line"},
      {"[1]", "not a JSON object", ""},
      {"{\"text\": \"a\"}", "not exactly one kind", "an example is 'messages'"},
      {R"({"prompt": "a", "messages": []})", "not exactly one kind", "an example is"},
      {R"({"prompt": "a"})", "no 'response'", "add what is to be answered"},
      {R"({"prompt": "a", "response": ""})", "is empty", "remove the line"},
      {R"({"prompt": "a", "response": 5})", "'response' is 5", "a text, or a list"},
      {R"({"prompt": "a", "response": "b", "completion": "c"})", "both", "remove one"},
      {R"({"prompt": 5, "response": "b"})", "'prompt' is 5", "a text or a list of messages"},
      {R"({"prompt": "a", "completion": [{"role": "user", "content": "b"}]})", "'completion' is",
       "one message of the assistant"},
      {R"({"messages": []})", "'messages' is []", "not empty"},
      {R"({"messages": [{"role": "user", "content": "q"}]})", "none of the assistant",
       "add its answer"},
      {R"({"messages": [{"role": "bot", "content": "q"}]})", "role 'bot'", "are known"},
      {R"({"messages": [{"role": "assistant", "content": 1}]})", "message 0 of 'messages'", "text"},
      {R"({"tokens": [1]})", "must both be given", "an example is"},
      {R"({"prompt_tokens": [1], "tokens": []})", "'tokens' must be a list", "not empty"},
      {R"({"prompt_tokens": [1], "tokens": ["a"]})", "entry 0 of 'tokens'", "token id"},
  };
  for (const Case& c : cases) {
    const TemporaryFile file(std::string("{\"prompt\": \"a\", \"response\": \"b\"}\n") + c.line);
    const std::string message = error_of([&] { read_sft_data(file.path()); });
    INFO(c.line << ": " << message);
    CHECK(contains(message, file.path().string() + ":2: "));
    CHECK(contains(message, c.problem));
    CHECK(contains(message, c.advice));
  }
  const TemporaryFile empty("\n\n");
  CHECK(contains(error_of([&] { read_sft_data(empty.path()); }), "has no examples"));
}

}  // namespace taper::testing
