// SPDX-License-Identifier: Apache-2.0
#include "data/SftData.hpp"

#include <algorithm>
#include <utility>

#include "data/detail/AnsweredPrompt.hpp"

namespace taper {
namespace {

using detail::JsonLine;
using json = nlohmann::ordered_json;

constexpr const char* kForms =
    "an example is 'messages', 'prompt' with 'response' (or 'completion'), or 'prompt_tokens' with "
    "'tokens'";

SftItem read_pair(const JsonLine& line, const json& prompt) {
  const json *response = line.find("response"), *completion = line.find("completion");
  if (response != nullptr && completion != nullptr)
    line.fail("'response' and 'completion' are both there (they mean the same); remove one");
  if (response == nullptr && completion == nullptr)
    line.fail("'prompt' has no 'response' (or 'completion'); add what is to be answered");
  const std::string answer = response != nullptr
                                 ? detail::read_answer(line, *response, "response")
                                 : detail::read_answer(line, *completion, "completion");
  if (answer.empty())
    line.fail("the response is empty (there is nothing to learn); remove the line");
  return detail::answered(line, prompt, "prompt", answer);
}

void read_chat(const JsonLine& line, const json& messages, SftItem& item) {
  item.form = PromptForm::kMessages;
  item.chat = detail::read_chat(line, messages, "messages", "a list of messages");
  const bool answers =
      std::any_of(item.chat.messages.begin(), item.chat.messages.end(),
                  [](const ChatMessage& message) { return message.role == "assistant"; });
  if (!answers)
    line.fail(
        "'messages' has none of the assistant (there is nothing to learn); add its answer, or "
        "remove the line");
}

void read_ids(const JsonLine& line, SftItem& item) {
  const json *prompt = line.find("prompt_tokens"), *response = line.find("tokens");
  if (prompt == nullptr || response == nullptr)
    line.fail(std::string("'prompt_tokens' and 'tokens' (of the response) must both be given; ") +
              kForms);
  item.form = PromptForm::kTokens;
  item.prompt_tokens = detail::read_tokens(line, *prompt, "prompt_tokens");
  item.response_tokens = detail::read_tokens(line, *response, "tokens");
}

}  // namespace

std::vector<SftItem> read_sft_data(const std::filesystem::path& file) {
  std::vector<SftItem> items;
  detail::read_json_lines(file, "examples", [&](const JsonLine& line) {
    const json *prompt = line.find("prompt"), *messages = line.find("messages");
    const bool has_ids = line.find("prompt_tokens") != nullptr || line.find("tokens") != nullptr;
    if ((prompt != nullptr) + (messages != nullptr) + has_ids != 1)
      line.fail(std::string("not exactly one kind of example; ") + kForms);
    SftItem item;
    item.line = line.number;
    if (prompt != nullptr)
      item = read_pair(line, *prompt);
    else if (messages != nullptr)
      read_chat(line, *messages, item);
    else
      read_ids(line, item);
    items.push_back(std::move(item));
  });
  return items;
}

}  // namespace taper
