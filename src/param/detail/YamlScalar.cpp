// SPDX-License-Identifier: Apache-2.0
#include "param/detail/YamlScalar.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "base/Text.hpp"
#include "base/Utf8.hpp"

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

unsigned read_hex(std::string_view text, std::size_t& at, std::size_t digits) {
  unsigned code = 0;
  for (std::size_t i = 0; i < digits; ++i, ++at) {
    if (at >= text.size() || !std::isxdigit(static_cast<unsigned char>(text[at])))
      throw std::invalid_argument("an escape \\x or \\u lacks hexadecimal digits");
    const char digit = static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
    code = code * 16 + static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  return code;
}

// Whether a quote at this place opens quoted text; inside a word or sentence it is an apostrophe.
bool starts_value(std::string_view line, std::size_t at) {
  const std::size_t before = at == 0 ? line.npos : line.find_last_not_of(" \t", at - 1);
  return before == line.npos || std::string_view(":-[{,").find(line[before]) != line.npos;
}

// at stands behind the backslash.
void read_escape(std::string_view text, std::size_t& at, std::string& result) {
  const char kind = at < text.size() ? text[at++] : '\0';
  switch (kind) {
    case 'n':
      result += '\n';
      break;
    case 't':
      result += '\t';
      break;
    case 'r':
      result += '\r';
      break;
    case '0':
      result += '\0';
      break;
    case '"':
    case '\\':
    case '/':
    case ' ':
      result += kind;
      break;
    case 'x':
      append_utf8(result, read_hex(text, at, 2));
      break;
    case 'u':
      append_utf8(result, read_hex(text, at, 4));
      break;
    default:
      throw std::invalid_argument("the escape \\" + std::string(1, kind) +
                                  " is unknown; write \\\\ for a backslash or use single quotes");
  }
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

std::string read_quoted(std::string_view text, std::size_t& at) {
  const char quote = text[at++];
  std::string result;
  while (at < text.size()) {
    const char c = text[at++];
    if (c == '\\' && quote == '"') {
      read_escape(text, at, result);
    } else if (c != quote) {
      result += c;
    } else if (quote == '\'' && at < text.size() && text[at] == '\'') {
      result += text[at++];
    } else {
      return result;
    }
  }
  throw std::invalid_argument(std::string("the closing ") + quote + " is missing");
}

std::size_t length_without_comment(std::string_view line) {
  std::size_t end = line.size();
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == '\\' && quote == '"') {
        ++i;
      } else if (c == quote) {
        quote = '\0';
      }
    } else if ((c == '\'' || c == '"') && starts_value(line, i)) {
      quote = c;
    } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      end = i;
      break;
    }
  }
  while (end > 0 && (line[end - 1] == ' ' || line[end - 1] == '\t')) --end;
  return end;
}

}  // namespace taper::param::detail
