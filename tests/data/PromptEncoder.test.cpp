// SPDX-License-Identifier: Apache-2.0
#include "data/PromptEncoder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "support/Messages.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using Tokens = std::vector<std::int32_t>;

// Ids are bytes, and five special tokens.
const ModelFiles& model() {
  static const ModelFiles files(TAPER_DATA_DIR "/model");
  return files;
}
constexpr int kBos = 256, kUser = 259, kAssistant = 260, kIds = 261;

// Without a tokenizer: 320 ids, a context of 256 tokens.
const ModelFiles& bare_model() {
  static const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_a");
  return files;
}

PromptItem text_item(const std::string& text) {
  PromptItem item;
  item.text = text;
  return item;
}

PromptItem token_item(const std::vector<int>& ids) {
  PromptItem item;
  item.form = PromptForm::kTokens;
  item.tokens = ids;
  return item;
}

PromptItem chat_item(const std::string& role, const std::string& content) {
  PromptItem item;
  item.form = PromptForm::kMessages;
  item.chat.messages.push_back({role, content});
  return item;
}

// {"tokens": [7, 7, ...]}
std::string line_of(int tokens) {
  std::string line = "{\"tokens\": [7";
  for (int i = 1; i < tokens; ++i) line += ", 7";
  return line + "]}\n";
}

}  // namespace

TEST_CASE("a prompt of each form becomes ids, with special tokens written once") {
  PromptEncoder encoder(model(), "auto");
  CHECK(encoder.encode(text_item("ab"), "x") == Tokens{kBos, 'a', 'b'});
  CHECK(encoder.encode(text_item(""), "x") == Tokens{kBos});
  CHECK(encoder.encode(chat_item("user", "ab"), "x") == Tokens{kBos, kUser, 'a', 'b', kAssistant});
  CHECK(encoder.encode(token_item({'a', kBos}), "x") == Tokens{'a', kBos});
}

TEST_CASE("prompts that the model cannot take are refused with their place") {
  PromptEncoder encoder(model(), "auto"), bare(bare_model(), "auto");
  const auto refusal = [](PromptEncoder& of, const PromptItem& item) {
    return message_of([&] { of.encode(item, "line 7"); });
  };
  CHECK_THAT(refusal(encoder, token_item({})), ContainsSubstring("line 7: the prompt has no tok"));
  CHECK_THAT(
      refusal(encoder, token_item({1, kIds})),
      ContainsSubstring("line 7: token id 261 is unknown") && ContainsSubstring("below 261"));
  CHECK_THAT(refusal(encoder, token_item({-1})), ContainsSubstring("token id -1 is unknown"));
  CHECK_THAT(refusal(bare, text_item("a")), ContainsSubstring("has no tokenizer.json"));
  CHECK(refusal(bare, token_item({319})).empty());
  PromptEncoder strict(model(), TAPER_GOLDEN_DIR "/text/templates/llama2.jinja");
  CHECK_THAT(refusal(strict, chat_item("assistant", "a")),
             ContainsSubstring("line 7: the chat template"));
  PromptEncoder lost(model(), "no/template");  // which only chats ask for
  CHECK(refusal(lost, text_item("a")).empty());
  CHECK_THAT(refusal(lost, chat_item("user", "a")), ContainsSubstring("no/template"));
}

TEST_CASE("the prompts of a file keep their order, and leave room for a response") {
  const Scratch scratch;
  const auto file = scratch / "in.jsonl";
  spill(file, "{\"tokens\": [5, 9]}\n\n" + line_of(255));
  const auto prompts = encode_prompt_file(file, bare_model(), "auto");
  CHECK(prompts == std::vector<Tokens>{{5, 9}, Tokens(255, 7)});
  spill(file, "{\"tokens\": [5, 9]}\n\n" + line_of(256));
  CHECK_THAT(message_of([&] { encode_prompt_file(file, bare_model(), "auto"); }),
             ContainsSubstring(file.string() + ":3: the prompt has 256 tokens") &&
                 ContainsSubstring("shorten it"));
}

TEST_CASE("lines to score are a response behind its prompt, or one text") {
  const Scratch scratch;
  const auto file = scratch / "in.jsonl";
  spill(file,
        "{\"prompt_tokens\": [1, 2], \"tokens\": [3]}\n{\"tokens\": [5, 9]}\n" + line_of(256));
  const ScoreInput input = read_score_input(file, bare_model());
  CHECK(input.sequences == std::vector<Tokens>{{1, 2, 3}, {5, 9}, Tokens(256, 7)});
  CHECK(input.prompt_lengths == std::vector<int>{2, 0, 0});

  const auto refusal = [&](const std::string& line) {
    spill(file, "{\"tokens\": [5]}\n" + line);
    return message_of([&] { read_score_input(file, bare_model()); });
  };
  const std::string place = file.string() + ":2: ";
  CHECK_THAT(refusal("{\"prompt\": \"a\"}\n"), ContainsSubstring(place + "no 'tokens'"));
  CHECK_THAT(refusal("{\"prompt_tokens\": [1], \"tokens\": [320]}\n"),
             ContainsSubstring(place + "token id 320 is unknown"));
  CHECK_THAT(refusal(line_of(257)), ContainsSubstring(place + "257 tokens"));
}

TEST_CASE("sequences that differ, also only in where one ends, have different hashes") {
  using Sequences = std::vector<Tokens>;
  const std::vector<Sequences> all{Sequences(),   Sequences(1),  Sequences(2),  {{1, 2}, {3}},
                                   {{1}, {2, 3}}, {{3}, {1, 2}}, {{1, 2}, {4}}, {Tokens{1, 2, 3}}};
  std::set<std::string> hashes;
  for (const Sequences& sequences : all) {
    hashes.insert(hash_text(sequences));
    CHECK(hash_text(sequences) == hash_text(Sequences(sequences)));
  }
  CHECK(hashes.size() == all.size());
}
