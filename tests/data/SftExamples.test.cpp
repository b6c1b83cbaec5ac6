// SPDX-License-Identifier: Apache-2.0
#include "data/SftExamples.hpp"

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

const ModelFiles& model() {
  static const ModelFiles files(TAPER_DATA_DIR "/model");
  return files;
}

// The parts of an example that are learned, as text with special tokens.
std::vector<std::string> learned(const TokenExample& example) {
  std::vector<std::string> texts;
  for (const Range& answer : example.answers)
    texts.push_back(model().tokenizer().decode(
        std::span(example.tokens).subspan(answer.begin, answer.size()), SkipSpecial::kNo));
  return texts;
}

SftItem chat(int turns) {
  SftItem item;
  item.form = PromptForm::kMessages;
  for (int i = 0; i < turns; ++i) {
    item.chat.messages.push_back({"user", "q" + std::to_string(i)});
    item.chat.messages.push_back({"assistant", "a" + std::to_string(i)});
  }
  return item;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("of a chat all answers are learned, or the last, with the tokens that end them") {
  SftEncoder all(model(), "auto", SftAnswers::kAll), last(model(), "auto", SftAnswers::kLast);
  SftItem item = chat(3);
  CHECK(learned(all.encode(item, "x")) == Texts{"a0<|eos|>", "a1<|eos|>", "a2<|eos|>"});
  CHECK(learned(last.encode(item, "x")) == Texts{"a2<|eos|>"});
  item.first_answer = 5;  // a prompt of messages with a response
  CHECK(learned(all.encode(item, "x")) == Texts{"a2<|eos|>"});
  item.chat.messages.push_back({"user", "what stands behind the last answer is not looked at"});
  const TokenExample example = all.encode(item, "x");
  CHECK(example.answers.back().end == example.length());
  // The same tokens as a rollout would have before its response.
  const auto chatml =
      SftEncoder(model(), TAPER_DATA_DIR "/chat_templates/chatml.jinja", SftAnswers::kLast)
          .encode(chat(2), "x");
  CHECK(learned(chatml) == Texts{"a1<|im_end|>"});
}

TEST_CASE("a text that answers a text ends with the end of sequence") {
  SftEncoder encoder(model(), "auto", SftAnswers::kAll);
  SftItem item;
  item.prompt = "1+1=";
  item.response = "2";
  const TokenExample example = encoder.encode(item, "x");
  CHECK(example.tokens.back() == model().config.eos_ids.front());
  CHECK(example.targets() == 2);
  CHECK(example.answers == std::vector<Range>{{example.length() - 2, example.length()}});
  item.form = PromptForm::kTokens;
  item.prompt_tokens = {5, 6, 7};
  item.response_tokens = {8, 9};
  const TokenExample ids = encoder.encode(item, "x");  // as they are
  CHECK(ids.tokens == std::vector<std::int32_t>{5, 6, 7, 8, 9});
  CHECK(ids.answers == std::vector<Range>{{3, 5}});
}

TEST_CASE("examples that cannot be learned are named with file and line") {
  SftEncoder encoder(model(), "auto", SftAnswers::kAll),
      plain(model(), TAPER_DATA_DIR "/chat_templates/plain.jinja", SftAnswers::kAll);
  SftItem ids;
  ids.form = PromptForm::kTokens;
  ids.prompt_tokens = {5};
  ids.response_tokens = {99999};
  CHECK_THROWS_MATCHES(encoder.encode(ids, "f:3"), Error,
                       MessageMatches(ContainsSubstring("f:3: token id 99999 is unknown")));
  CHECK_THROWS_MATCHES(plain.encode(chat(1), "f:3"), Error,
                       MessageMatches(ContainsSubstring("f:3: the answer in message") &&
                                      ContainsSubstring("plain.jinja")));
}

TEST_CASE("what is too long is left out, cut or refused") {
  const Scratch scratch;
  const std::string file = (scratch / "data.jsonl").string();
  spill(file, R"({"prompt": "ab", "response": "c"}
{"prompt": "ab", "response": "cdefghijkl"}
{"prompt": "abcdefghijkl", "response": "c"}
)");
  SftDataOptions data;
  const int limit = 8;
  const auto read = [&](int most) {
    return read_examples("Data/Files", {file, file}, data, model(), most);
  };
  CHECK(read(100).size() == 6);
  CHECK(read(limit).size() == 2);
  CHECK_THROWS_MATCHES(
      read(2), Error,
      MessageMatches(ContainsSubstring(file + ": all examples are longer than 2") &&
                     ContainsSubstring("raise Training/Max Tokens")));
  data.over_long = OverLong::kCut;
  const auto examples = read(limit);
  REQUIRE(examples.size() == 4);  // of the third line nothing to learn is left
  CHECK(examples[1].length() == limit);
  CHECK(examples[1].answers.back().end == limit);
  data.over_long = OverLong::kStop;
  CHECK_THROWS_MATCHES(read(limit), Error,
                       MessageMatches(ContainsSubstring(file + ":2: the example has") &&
                                      ContainsSubstring("Data/Over Long to drop or cut")));
  CHECK_THROWS_MATCHES(read_examples("Data/Files", {"no where"}, data, model(), limit), Error,
                       MessageMatches(ContainsSubstring("Data/Files is 'no where'")));
}
