// SPDX-License-Identifier: Apache-2.0
#include "data/PromptData.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/GoldenText.hpp"
#include "support/TemporaryFile.hpp"

namespace taper::testing {
namespace {

std::string data_error(const std::string& text) {
  const TemporaryFile file(text);
  return error_of([&] { read_prompt_data(file.path()); });
}

TEST_CASE("prompt data in both forms of verl") {
  const TemporaryFile file(R"({"prompt": "1+1=", "data_source": "sum", "ground_truth": "2"}

{"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q\n"}], "data_source": "openai/gsm8k", "ability": "math", "reward_model": {"style": "rule", "ground_truth": 72}, "extra_info": {"index": 5}}
{"prompt": "", "reward_model": null, "ground_truth": ["1", "2"]})");
  const auto items = read_prompt_data(file.path());
  REQUIRE(items.size() == 3);
  CHECK(items[0].form == PromptForm::kText);
  CHECK(items[0].text == "1+1=");
  CHECK(items[0].data_source == "sum");
  CHECK(items[0].ground_truth == "2");
  CHECK(items[1].form == PromptForm::kMessages);
  REQUIRE(items[1].chat.messages.size() == 2);
  CHECK(items[1].chat.messages[1].content == "q\n");
  CHECK(items[1].ground_truth == "72");
  CHECK(items[1].line == 3);
  CHECK(items[2].ground_truth == R"(["1","2"])");
}

TEST_CASE("prompts as messages and as token ids") {
  const TemporaryFile file(
      "{\"prompt\": \"x\"}\r\n{\"messages\": [{\"role\": \"user\", \"content\": \"y\"}]}\n"
      "{\"tokens\": [1, 2, 3], \"ground_truth\": \"4\"}\n");
  const auto items = read_prompt_data(file.path());
  REQUIRE(items.size() == 3);
  CHECK(items[0].text == "x");
  CHECK(items[1].chat.messages[0].role == "user");
  CHECK(items[2].form == PromptForm::kTokens);
  CHECK(items[2].tokens == std::vector<int>{1, 2, 3});
  CHECK(items[2].response.empty());
  CHECK(items[2].ground_truth == "4");
}

TEST_CASE("lines of responses have prompt and response apart") {
  const TemporaryFile file(
      "{\"index\": 0, \"sample\": 1, \"prompt_tokens\": [1, 2], \"tokens\": [3], \"text\": null}\n"
      "{\"prompt_tokens\": [1, 2]}\n");
  const auto items = read_prompt_data(file.path());
  REQUIRE(items.size() == 2);
  CHECK(items[0].form == PromptForm::kTokens);
  CHECK(items[0].tokens == std::vector<int>{1, 2});
  CHECK(items[0].response == std::vector<int>{3});
  CHECK(items[1].tokens == std::vector<int>{1, 2});
  CHECK(items[1].response.empty());
}

TEST_CASE("errors name file and line") {
  CHECK(contains(data_error("{\"prompt\": \"a\"}\n{\"prompt\": \n"), ".jsonl:2: not valid JSON"));
  CHECK(contains(data_error("{\"prompt\": \"\xFF\"}\n"), ".jsonl:1: not valid JSON in UTF-8"));
  CHECK(contains(data_error("[1]\n"), ".jsonl:1: not a JSON object"));
  CHECK(contains(data_error("{\"question\": 1}\n"), "exactly one"));
  CHECK(contains(data_error("{\"prompt\": 5}\n"),
                 ".jsonl:1: 'prompt' is 5 (a text or a list of messages is expected"));
  CHECK(contains(data_error("{\"messages\": \"a\"}\n"), "'messages' is \"a\" (a list of messages"));
  CHECK(contains(data_error("\n{\"prompt\": [{\"role\": \"usr\", \"content\": \"a\"}]}\n"),
                 ".jsonl:2: message 0 of 'prompt' has role 'usr'"));
  CHECK(contains(data_error("{\"prompt\": []}\n"), "not empty"));
  CHECK(contains(data_error("{\"prompt\": [{\"role\": \"user\"}]}\n"), "message 0"));
  CHECK(contains(data_error("{\"prompt\": \"a\", \"data_source\": 1}\n"), "'data_source'"));
  CHECK(contains(data_error("{\"prompt\": \"a\", \"reward_model\": 1}\n"), "'reward_model'"));
  CHECK(contains(data_error("\n \n"), "has no prompts"));
  CHECK(contains(data_error("{}\n"), "exactly one"));
  CHECK(contains(data_error("{\"prompt\": \"a\", \"tokens\": [1]}\n"), "exactly one"));
  CHECK(contains(data_error("{\"prompt\": \"a\", \"messages\": []}\n"), "exactly one"));
  CHECK(contains(data_error("{\"messages\": [1]}\n"), "message 0 of 'messages'"));
  CHECK(contains(data_error("{\"prompt_tokens\": [\"a\"]}\n"), "entry 0 of 'prompt_tokens'"));
  CHECK(contains(data_error("{\"tokens\": []}\n"), "not empty"));
  CHECK(contains(data_error("{\"tokens\": [1, -2]}\n"), "entry 1"));
  CHECK(contains(data_error("{\"tokens\": [1.5]}\n"), "entry 0"));
  CHECK(contains(data_error("{\"tokens\": [4294967296]}\n"), "entry 0"));
  CHECK(contains(error_of([] { read_prompt_data("/no/such.jsonl"); }), "/no/such.jsonl"));
}

}  // namespace
}  // namespace taper::testing
