// SPDX-License-Identifier: Apache-2.0
#include "data/PromptData.hpp"

#include <nlohmann/json.hpp>

#include "data/detail/JsonLine.hpp"

namespace taper {
namespace {

using detail::JsonLine;
using json = nlohmann::ordered_json;

constexpr const char* kMessages = "a list of messages";
constexpr const char* kTextOrMessages = "a text or a list of messages";

std::string as_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void read_ground_truth(const JsonLine& line, PromptItem& item) {
  const json* truth = line.find("ground_truth");
  if (!truth) {
    const json* model = line.find("reward_model");
    if (model && !model->is_object())
      line.fail("'reward_model' must be an object with the key 'ground_truth'");
    if (model) truth = detail::find(*model, "ground_truth");
  }
  if (!truth) return;
  if (truth->is_object() || truth->is_boolean())
    line.fail("'ground_truth' is " + detail::shown(*truth) +
              " (a text, a number or a list of these is expected); write it as a text");
  item.ground_truth = as_text(*truth);
}

void read_prompt(const JsonLine& line, PromptItem& item) {
  const json* prompt = line.find("prompt");
  const json* messages = line.find("messages");
  const json* prompt_tokens = line.find("prompt_tokens");
  const json* tokens = line.find("tokens");
  const bool has_ids = prompt_tokens != nullptr || tokens != nullptr;
  if ((prompt != nullptr) + (messages != nullptr) + has_ids != 1)
    line.fail(
        "exactly one of 'prompt' (text or messages), 'messages' and 'tokens' (or 'prompt_tokens') "
        "must be given; add what is missing, or remove the line");
  if (prompt && prompt->is_string()) {
    item.text = prompt->get<std::string>();
  } else if (prompt || messages) {
    item.form = PromptForm::kMessages;
    item.chat = prompt ? detail::read_chat(line, *prompt, "prompt", kTextOrMessages)
                       : detail::read_chat(line, *messages, "messages", kMessages);
  } else if (prompt_tokens) {
    item.form = PromptForm::kTokens;
    item.tokens = detail::read_tokens(line, *prompt_tokens, "prompt_tokens");
    if (tokens) item.response = detail::read_tokens(line, *tokens, "tokens");
  } else {
    item.form = PromptForm::kTokens;
    item.tokens = detail::read_tokens(line, *tokens, "tokens");
  }
}

PromptItem read_line(const JsonLine& line) {
  PromptItem item;
  read_prompt(line, item);
  if (const json* source = line.find("data_source")) {
    if (!source->is_string()) line.fail("'data_source' must be a text");
    item.data_source = source->get<std::string>();
  }
  read_ground_truth(line, item);
  if (const json* extra = line.find("extra_info")) item.extra_info = extra->dump();
  return item;
}

}  // namespace

std::vector<PromptItem> read_prompt_data(const std::filesystem::path& path) {
  std::vector<PromptItem> items;
  detail::read_json_lines(path, "prompts", [&](const JsonLine& line) {
    items.push_back(read_line(line));
    items.back().line = line.number;
  });
  return items;
}

}  // namespace taper
