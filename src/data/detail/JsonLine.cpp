// SPDX-License-Identifier: Apache-2.0
#include "data/detail/JsonLine.hpp"

#include <fstream>
#include <limits>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/TextFile.hpp"

namespace taper::detail {

using json = nlohmann::ordered_json;

void JsonLine::fail(const std::string& problem) const {
  TAPER_FAIL(ExitCode::kBadInput, where << ": " << problem);
}

const json* JsonLine::find(const char* key) const {
  return detail::find(object, key);
}

const json* find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string shown(const json& value) {
  constexpr std::size_t kMost = 60;
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

void read_json_lines(const std::filesystem::path& path, const std::string& what,
                     const std::function<void(const JsonLine&)>& read) {
  std::ifstream file = open_text_file(path);
  int number = 0, lines = 0;
  for (std::string text; std::getline(file, text);) {
    JsonLine line{nullptr, line_text(path, ++number), number};
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    line.object = json::parse(text, nullptr, false);
    if (line.object.is_discarded())
      line.fail("not valid JSON in UTF-8 (one object per line is expected)");
    if (!line.object.is_object()) line.fail("not a JSON object");
    read(line);
    ++lines;
  }
  TAPER_VALIDATE(!file.bad(), path_text(path)
                                  << " cannot be read (error after line " << number << ")");
  TAPER_VALIDATE(lines > 0, path_text(path) << " has no " << what << " (one JSON object per line)");
}

namespace {

// Roles of published templates; another one is taken for a slip.
bool is_role(const std::string& name) {
  for (const char* known :
       {"system", "developer", "user", "assistant", "tool", "function", "ipython"})
    if (name == known) return true;
  return false;
}

ChatMessage read_message(const JsonLine& line, json entry, const std::string& which) {
  const json* role = entry.is_object() ? find(entry, "role") : nullptr;
  const json* content = entry.is_object() ? find(entry, "content") : nullptr;
  const bool calls_tools = entry.is_object() && find(entry, "tool_calls") != nullptr;
  if (!role || !role->is_string() || (content ? !content->is_string() : !calls_tools))
    line.fail(which + " must be {\"role\": text, \"content\": text}");
  ChatMessage message{role->get<std::string>(), content ? content->get<std::string>() : ""};
  if (!is_role(message.role))
    line.fail(which + " has role '" + message.role +
              "' (system, developer, user, assistant, tool, function and ipython are known)");
  entry.erase("role");
  entry.erase("content");
  if (!entry.empty()) message.other = entry.dump();
  return message;
}

}  // namespace

Chat read_chat(const JsonLine& line, const json& list, const char* key, const char* wanted) {
  if (!list.is_array() || list.empty())
    line.fail(std::string("'") + key + "' is " + shown(list) + " (" + wanted +
              " is expected, not empty)");
  Chat chat;
  for (const auto& entry : list)
    chat.messages.push_back(read_message(
        line, entry, "message " + std::to_string(chat.messages.size()) + " of '" + key + "'"));
  if (const json* tools = line.find("tools")) {
    if (!tools->is_array()) line.fail("'tools' is " + shown(*tools) + " (a list is expected)");
    chat.tools = tools->dump();
  }
  return chat;
}

std::vector<int> read_tokens(const JsonLine& line, const json& list, const char* key) {
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

}  // namespace taper::detail
