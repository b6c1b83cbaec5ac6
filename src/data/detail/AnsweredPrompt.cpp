// SPDX-License-Identifier: Apache-2.0
#include "data/detail/AnsweredPrompt.hpp"

namespace taper::detail {

std::string read_answer(const JsonLine& line, const nlohmann::ordered_json& answer,
                        const char* key) {
  if (answer.is_string()) return answer.get<std::string>();
  const char* const wanted = "a text, or a list with one message of the assistant,";
  const auto messages = read_chat(line, answer, key, wanted).messages;
  if (messages.size() != 1 || messages.front().role != "assistant")
    line.fail(std::string("'") + key + "' is " + shown(answer) + " (" + wanted + " is expected)");
  return messages.front().content;
}

SftItem answered(const JsonLine& line, const nlohmann::ordered_json& prompt, const char* key,
                 const std::string& answer) {
  SftItem item;
  item.line = line.number;
  if (prompt.is_string()) {
    item.prompt = prompt.get<std::string>();
    item.response = answer;
    return item;
  }
  item.form = PromptForm::kMessages;
  item.chat = read_chat(line, prompt, key, "a text or a list of messages");
  item.first_answer = item.chat.messages.size();
  item.chat.messages.push_back({"assistant", answer});
  return item;
}

}  // namespace taper::detail
