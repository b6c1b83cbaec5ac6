// SPDX-License-Identifier: Apache-2.0
#include "io/Json.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/TextFile.hpp"
#include "io/AtomicFile.hpp"

namespace taper {

namespace {

// The parser knows the byte; people want line and column. byte counts from 1.
std::string position_text(std::string_view text, std::size_t byte) {
  const auto before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// The library's text after its own preamble: "syntax error while parsing ...".
std::string reason(const std::string& what) {
  const auto colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

template <class Value>
Value parse(std::string_view text, const std::string& where) {
  try {
    return Value::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    TAPER_FAIL(ExitCode::kBadInput, where << " is not valid JSON ("
                                          << position_text(text, error.byte) << ": "
                                          << reason(error.what()) << ")");
  } catch (const nlohmann::json::exception& error) {  // a number beyond all ranges
    TAPER_FAIL(ExitCode::kBadInput,
               where << " cannot be read as JSON (" << reason(error.what()) << ")");
  }
}

template <class Value>
void write(const std::filesystem::path& path, const Value& value, int indent) {
  try {
    write_file_atomically(path, value.dump(indent) + "\n");
  } catch (const nlohmann::json::exception& error) {
    TAPER_FAIL(ExitCode::kFailure, path_text(path)
                                       << " cannot be written as JSON (" << error.what() << ")");
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  return parse<Json>(text, where);
}

OrderedJson parse_ordered_json(std::string_view text, const std::string& where) {
  return parse<OrderedJson>(text, where);
}

Json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_text_file(path), path_text(path));
}

void write_json_file(const std::filesystem::path& path, const Json& value, int indent) {
  write(path, value, indent);
}

void write_json_file(const std::filesystem::path& path, const OrderedJson& value, int indent) {
  write(path, value, indent);
}

JsonLines::JsonLines(const std::filesystem::path& path) : path_(path), in_(open_text_file(path)) {}

bool JsonLines::next_text(std::string& text) {
  while (std::getline(in_, text)) {
    ++line_;
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.find_first_not_of(" \t") != std::string::npos) return true;
  }
  TAPER_VALIDATE(!in_.bad(), path_text(path_)
                                 << " cannot be read (error after line " << line_ << ")");
  return false;
}

bool JsonLines::next(Json& value) {
  std::string text;
  if (!next_text(text)) return false;
  value = parse_json(text, where());
  return true;
}

std::string JsonLines::where() const {
  return line_text(path_, line_);
}

}  // namespace taper
