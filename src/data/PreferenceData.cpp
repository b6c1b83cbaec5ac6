// SPDX-License-Identifier: Apache-2.0
#include "data/PreferenceData.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "data/detail/AnsweredPrompt.hpp"

namespace taper {
namespace {

using detail::JsonLine;
using json = nlohmann::ordered_json;

constexpr const char* kForms =
    "a pair is 'prompt' (or 'messages') with 'chosen' and 'rejected', 'chosen' and 'rejected' as "
    "whole chats, or 'prompt_tokens' with 'chosen_tokens' and 'rejected_tokens'";

const json& value_of(const JsonLine& line, const char* key) {
  const json* value = line.find(key);
  if (value == nullptr) line.fail(std::string("'") + key + "' is missing; " + kForms);
  return *value;
}

// A response to a prompt that stands apart.
SftItem read_response(const JsonLine& line, const char* prompt, const char* key) {
  const std::string answer = detail::read_answer(line, value_of(line, key), key);
  if (answer.empty())
    line.fail(std::string("'") + key + "' is empty (there is nothing to judge); remove the line");
  return detail::answered(line, value_of(line, prompt), prompt, answer);
}

// A chat that ends with the response.
SftItem read_chat(const JsonLine& line, const char* key) {
  const json& chat = value_of(line, key);
  if (chat.is_string())
    line.fail(std::string("'") + key +
              "' is a text without a 'prompt' (where the response begins is not known); " + kForms);
  SftItem item;
  item.line = line.number;
  item.form = PromptForm::kMessages;
  item.chat = detail::read_chat(line, chat, key, "a list of messages");
  const ChatMessage& last = item.chat.messages.back();
  if (last.role != "assistant")
    line.fail(std::string("'") + key + "' does not end with a message of the assistant");
  if (last.content.empty())
    line.fail(std::string("'") + key +
              "' ends with an empty message (there is nothing to judge); remove the line");
  item.first_answer = item.chat.messages.size() - 1;
  return item;
}

SftItem read_ids(const JsonLine& line, const char* key) {
  SftItem item;
  item.line = line.number;
  item.form = PromptForm::kTokens;
  item.prompt_tokens = detail::read_tokens(line, value_of(line, "prompt_tokens"), "prompt_tokens");
  item.response_tokens = detail::read_tokens(line, value_of(line, key), key);
  return item;
}

bool is_same(const SftItem& a, const SftItem& b) {
  return a.prompt == b.prompt && a.response == b.response && a.prompt_tokens == b.prompt_tokens &&
         a.response_tokens == b.response_tokens && a.chat == b.chat;
}

double read_margin(const JsonLine& line) {
  const json* margin = line.find("margin");
  if (margin == nullptr) return 0.0;
  if (!margin->is_number() || !std::isfinite(margin->get<double>()))
    line.fail("'margin' is " + detail::shown(*margin) + " (a number is expected)");
  return margin->get<double>();
}

}  // namespace

std::vector<PreferenceItem> read_preference_data(const std::filesystem::path& file) {
  std::vector<PreferenceItem> items;
  detail::read_json_lines(file, "preference pairs", [&](const JsonLine& line) {
    const bool prompt = line.find("prompt") != nullptr, messages = line.find("messages") != nullptr;
    const bool ids = line.find("prompt_tokens") != nullptr || line.find("chosen_tokens") != nullptr;
    if (prompt + messages + ids > 1)
      line.fail(std::string("more than one kind of pair; ") + kForms);
    PreferenceItem item;
    item.line = line.number;
    item.margin = read_margin(line);
    const auto read = [&](const char* text_key, const char* ids_key) {
      if (ids) return read_ids(line, ids_key);
      if (prompt || messages) return read_response(line, prompt ? "prompt" : "messages", text_key);
      return read_chat(line, text_key);
    };
    item.chosen = read("chosen", "chosen_tokens");
    item.rejected = read("rejected", "rejected_tokens");
    if (is_same(item.chosen, item.rejected))
      line.fail("chosen and rejected are the same (none of them is preferred); remove the line");
    items.push_back(std::move(item));
  });
  return items;
}

}  // namespace taper
