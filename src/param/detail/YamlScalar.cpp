// SPDX-License-Identifier: Apache-2.0
#include "param/detail/YamlScalar.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/Text.hpp"

namespace taper::param::detail {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

bool is_plain(const std::string& text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ') return false;
  if (std::any_of(text.begin(), text.end(), is_control)) return false;
  if (infer_scalar(text).kind != Value::Kind::kText) return false;
  // Other YAML readers take these words for flags and nulls. "none", "on" and "off" are wanted
  // plain: our own readers give them as text.
  for (const char* word : {"yes", "no", "y", "n", "null", "~"}) {
    if (equal_ignoring_case(text, word)) return false;
  }
  if (text.find_first_of(":#[]{},&*!|>'\"%@`<=\\?") != std::string::npos) return false;
  return text.front() != '-' && text.front() != '.' && text.front() != '+';
}

std::string quote_single(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

std::string quote_double(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (c == '"' || c == '\\') {
      quoted += std::string("\\") + c;
    } else if (is_control(c)) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string format_text(const std::string& text) {
  if (is_plain(text)) return text;
  return std::any_of(text.begin(), text.end(), is_control) ? quote_double(text)
                                                           : quote_single(text);
}

}  // namespace

std::string format_scalar(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kFlag:
      return value.flag ? "true" : "false";
    case Value::Kind::kInteger:
      return std::to_string(value.integer);
    case Value::Kind::kNumber:
      return format_number(value.number);
    case Value::Kind::kText:
      return format_text(value.text);
    default:
      return "";
  }
}

std::string format_value(const Value& value) {
  if (value.kind != Value::Kind::kList) return format_scalar(value);
  std::vector<std::string> items;
  for (const auto& item : value.items) items.push_back(format_scalar(item));
  return "[" + join(items) + "]";
}

std::string format_key(const std::string& name) {
  return format_text(name);
}

}  // namespace taper::param::detail
