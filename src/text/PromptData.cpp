// SPDX-License-Identifier: Apache-2.0
#include "text/PromptData.hpp"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/TextFile.hpp"

namespace taper {
namespace {

using nlohmann::json;

// One line, with what its errors must name.
struct Line {
  json object;
  std::string where;  // "file:line"
  int number = 0;

  [[noreturn]] void fail(const std::string& problem) const {
    TAPER_FAIL(ExitCode::kBadInput, where << ": " << problem);
  }
};

const json* find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// As it stands in the file, cut where it is long.
std::string shown(const json& value) {
  constexpr std::size_t kMost = 60;
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

std::vector<ChatMessage> read_messages(const Line& line, const json& list, const char* key) {
  const char* const wanted =
      std::string_view(key) == "prompt" ? "a text or a list of messages" : "a list of messages";
  if (!list.is_array() || list.empty())
    line.fail(std::string("'") + key + "' is " + shown(list) + " (" + wanted +
              " is wanted, not empty)");
  std::vector<ChatMessage> messages;
  for (const auto& entry : list) {
    const json* role = entry.is_object() ? find(entry, "role") : nullptr;
    const json* content = entry.is_object() ? find(entry, "content") : nullptr;
    if (!role || !content || !role->is_string() || !content->is_string())
      line.fail("message " + std::to_string(messages.size()) + " of '" + key +
                "' must be {\"role\": text, \"content\": text}");
    const auto name = role->get<std::string>();
    if (name != "system" && name != "user" && name != "assistant")
      line.fail("message " + std::to_string(messages.size()) + " of '" + key + "' has role '" +
                name + "' (system, user and assistant are known)");
    messages.push_back({name, content->get<std::string>()});
  }
  return messages;
}

std::vector<int> read_tokens(const Line& line, const json& list, const char* key) {
  if (!list.is_array() || list.empty())
    line.fail(std::string("'") + key + "' must be a list of token ids, not empty");
  std::vector<int> tokens;
  for (const auto& entry : list) {
    const bool fine = entry.is_number_integer() && entry.get<double>() >= 0 &&
                      entry.get<double>() <= std::numeric_limits<int>::max();
    if (!fine)
      line.fail("entry " + std::to_string(tokens.size()) + " of '" + key +
                "' is not a token id: " + entry.dump());
    tokens.push_back(entry.get<int>());
  }
  return tokens;
}

std::string as_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void read_ground_truth(const Line& line, PromptItem& item) {
  const json* truth = find(line.object, "ground_truth");
  if (!truth) {
    const json* model = find(line.object, "reward_model");
    if (model && !model->is_object())
      line.fail("'reward_model' must be an object with the key 'ground_truth'");
    if (model) truth = find(*model, "ground_truth");
  }
  if (truth) item.ground_truth = as_text(*truth);
}

void read_prompt(const Line& line, PromptItem& item) {
  const json* prompt = find(line.object, "prompt");
  const json* messages = find(line.object, "messages");
  const json* prompt_tokens = find(line.object, "prompt_tokens");
  const json* tokens = find(line.object, "tokens");
  const bool has_ids = prompt_tokens != nullptr || tokens != nullptr;
  if ((prompt != nullptr) + (messages != nullptr) + has_ids != 1)
    line.fail(
        "exactly one of 'prompt' (text or messages), 'messages' and 'tokens' (or 'prompt_tokens') "
        "must be given");
  if (prompt && prompt->is_string()) {
    item.text = prompt->get<std::string>();
  } else if (prompt || messages) {
    item.form = PromptForm::kMessages;
    item.messages = prompt ? read_messages(line, *prompt, "prompt")
                           : read_messages(line, *messages, "messages");
  } else if (prompt_tokens) {
    item.form = PromptForm::kTokens;
    item.tokens = read_tokens(line, *prompt_tokens, "prompt_tokens");
    if (tokens) item.response = read_tokens(line, *tokens, "tokens");
  } else {
    item.form = PromptForm::kTokens;
    item.tokens = read_tokens(line, *tokens, "tokens");
  }
}

PromptItem read_line(const Line& line) {
  PromptItem item;
  read_prompt(line, item);
  if (const json* source = find(line.object, "data_source")) {
    if (!source->is_string()) line.fail("'data_source' must be a text");
    item.data_source = source->get<std::string>();
  }
  read_ground_truth(line, item);
  if (const json* extra = find(line.object, "extra_info")) item.extra_info = extra->dump();
  return item;
}

}  // namespace

std::vector<PromptItem> read_prompt_data(const std::filesystem::path& path) {
  std::ifstream file = open_text_file(path);
  std::vector<PromptItem> items;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    Line line{nullptr, line_text(path, ++number), number};
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    line.object = json::parse(text, nullptr, false);
    if (line.object.is_discarded())
      line.fail("not valid JSON in UTF-8 (one object per line is expected)");
    if (!line.object.is_object()) line.fail("not a JSON object");
    items.push_back(read_line(line));
    items.back().line = number;
  }
  TAPER_VALIDATE(!file.bad(), path_text(path)
                                  << " cannot be read (error after line " << number << ")");
  TAPER_VALIDATE(!items.empty(), path_text(path) << " has no prompts (one JSON object per line)");
  return items;
}

}  // namespace taper
