// SPDX-License-Identifier: Apache-2.0
//
// JSON files with errors that say where: file, line and column.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace taper {

// Keeps the order of keys as written.
using OrderedJson = nlohmann::ordered_json;
using Json = nlohmann::json;

// The whole file. Errors name the file, and line and column of what does not parse.
Json read_json_file(const std::filesystem::path& path);

// where stands in front of the error, e.g. a file name.
Json parse_json(std::string_view text, const std::string& where);
OrderedJson parse_ordered_json(std::string_view text, const std::string& where);

// Replaces the file in one step. indent as in Json::dump: -1 is one line.
void write_json_file(const std::filesystem::path& path, const Json& value, int indent = 2);
void write_json_file(const std::filesystem::path& path, const OrderedJson& value, int indent = 2);

// A JSONL file, value by value. Blank lines are skipped.
class JsonLines {
 public:
  explicit JsonLines(const std::filesystem::path& path);

  // False at the end of the file. Errors are "file:line: ...".
  bool next(Json& value);
  // The same with the text itself, for those who parse on their own.
  bool next_text(std::string& text);

  // "file:line" of the last value, for the errors of the caller.
  std::string where() const;

 private:
  std::filesystem::path path_;
  std::ifstream in_;
  std::int64_t line_ = 0;
};

}  // namespace taper
