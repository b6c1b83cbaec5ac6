// SPDX-License-Identifier: Apache-2.0
//
// Files of JSON lines as prompts and examples have them: reading with errors that name file and
// line.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/ChatTemplate.hpp"

namespace taper::detail {

// One line, with what its errors must name.
struct JsonLine {
  nlohmann::ordered_json object;  // keys in the order of the file
  std::string where;              // "file:line"
  int number = 0;                 // from 1

  // Throws Error (kBadInput).
  [[noreturn]] void fail(const std::string& problem) const;
  // The value of a key; null if it is absent or null.
  const nlohmann::ordered_json* find(const char* key) const;
};

// The value of a key of an object; null if it is absent or null.
const nlohmann::ordered_json* find(const nlohmann::ordered_json& object, const char* key);

// A value as it stands in the file, cut if it is long.
std::string shown(const nlohmann::ordered_json& value);

// Calls `read` with each line that is not white space. Throws Error naming file and line if one
// is no JSON object, or naming the file if it has none; `what` names what it should have
// ("prompts").
void read_json_lines(const std::filesystem::path& path, const std::string& what,
                     const std::function<void(const JsonLine&)>& read);

// The value of `key` as chat messages (with the line's "tools") or as token ids; neither may be
// empty. Throw Error naming the entry that is wrong; `wanted` says what the value should be.
Chat read_chat(const JsonLine& line, const nlohmann::ordered_json& list, const char* key,
               const char* wanted);
std::vector<int> read_tokens(const JsonLine& line, const nlohmann::ordered_json& list,
                             const char* key);

}  // namespace taper::detail
