// SPDX-License-Identifier: Apache-2.0
#include "param/detail/Value.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace taper::param::detail {
namespace {

constexpr std::size_t kLongestShown = 60;

bool any_of_words(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return equal_ignoring_case(text, word); });
}

// from_chars knows no leading plus.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

std::optional<double> parse_number(std::string_view text) {
  text = without_plus(text);
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (equal_ignoring_case(digits, "inf") || equal_ignoring_case(digits, ".inf"))
    return text.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
  // from_chars would also take "nan" and "infinity".
  if (digits.empty() || !(std::isdigit(static_cast<unsigned char>(digits[0])) || digits[0] == '.'))
    return std::nullopt;
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = without_plus(text);
  std::int64_t integer = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return integer;
}

std::optional<std::int64_t> as_integral(double number) {
  // 2^63 itself does not fit; the comparison also refuses NaN.
  constexpr double kEnd = 9223372036854775808.0;
  if (!(number >= -kEnd && number < kEnd) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

Value Value::of_flag(bool flag) {
  Value value;
  value.kind = Kind::kFlag;
  value.flag = flag;
  return value;
}

Value Value::of_integer(std::int64_t integer) {
  Value value;
  value.kind = Kind::kInteger;
  value.integer = integer;
  return value;
}

Value Value::of_number(double number) {
  Value value;
  value.kind = Kind::kNumber;
  value.number = number;
  return value;
}

Value Value::of_text(std::string text) {
  Value value;
  value.kind = Kind::kText;
  value.text = std::move(text);
  return value;
}

Value Value::of_list(std::vector<Value> items) {
  Value value;
  value.kind = Kind::kList;
  value.items = std::move(items);
  return value;
}

Value Value::of_section() {
  Value value;
  value.kind = Kind::kSection;
  return value;
}

Value infer_scalar(const std::string& text) {
  if (any_of_words(text, {"true"})) return Value::of_flag(true);
  if (any_of_words(text, {"false"})) return Value::of_flag(false);
  if (const auto integer = parse_integer(text)) return Value::of_integer(*integer);
  // A bare "inf" may be a name; ".inf" is YAML's spelling of the number.
  if (!text.empty() && std::isalpha(static_cast<unsigned char>(text.back())) &&
      text.find('.') == std::string::npos)
    return Value::of_text(text);
  if (const auto number = parse_number(text)) return Value::of_number(*number);
  return Value::of_text(text);
}

std::optional<double> to_number(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kInteger:
      return static_cast<double>(value.integer);
    case Value::Kind::kNumber:
      return std::isnan(value.number) ? std::nullopt : std::optional(value.number);
    case Value::Kind::kText:
      return parse_number(value.text);
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> to_integer(const Value& value) {
  if (value.kind == Value::Kind::kInteger) return value.integer;
  if (value.kind == Value::Kind::kText) {
    if (const auto integer = parse_integer(value.text)) return integer;
  }
  const auto number = to_number(value);
  return number ? as_integral(*number) : std::nullopt;
}

std::optional<bool> to_flag(const Value& value) {
  if (value.kind == Value::Kind::kFlag) return value.flag;
  if (value.kind != Value::Kind::kText) return std::nullopt;
  if (any_of_words(value.text, {"true", "yes", "on"})) return true;
  if (any_of_words(value.text, {"false", "no", "off"})) return false;
  return std::nullopt;
}

bool means_none(const Value& value) {
  return value.kind == Value::Kind::kText && any_of_words(value.text, {"none", "off", "null", "~"});
}

std::string show_found(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNothing:
      return "empty";
    case Value::Kind::kFlag:
      return value.flag ? "true" : "false";
    case Value::Kind::kInteger:
      return std::to_string(value.integer);
    case Value::Kind::kNumber:
      return format_number(value.number);
    case Value::Kind::kSection:
      return "a section";
    case Value::Kind::kText:
      if (value.text.size() <= kLongestShown) return '"' + value.text + '"';
      return '"' + value.text.substr(0, kLongestShown) + "...\"";
    case Value::Kind::kList:
      break;
  }
  std::string shown = "[";
  for (const auto& item : value.items) {
    if (shown.size() > kLongestShown) return shown + ", ...]";
    if (shown.size() > 1) shown += ", ";
    shown += show_found(item);
  }
  return shown + "]";
}

std::string name_kind(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNothing:
      return "nothing";
    case Value::Kind::kFlag:
      return "a flag";
    case Value::Kind::kInteger:
      return "an integer";
    case Value::Kind::kNumber:
      return "a number";
    case Value::Kind::kText:
      return "text";
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kSection:
      break;
  }
  return "a section";
}

double widen(float number) {
  if (!std::isfinite(number)) return number;
  char digits[40];
  const auto written = std::to_chars(digits, digits + sizeof digits, number);
  double wide = 0;
  std::from_chars(digits, written.ptr, wide);
  return wide;
}

std::string format_number(double number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number > 0 ? ".inf" : "-.inf";
  char digits[40];
  const auto result = std::to_chars(digits, digits + sizeof digits, number);
  std::string text(digits, result.ptr);
  if (text.find('.') == std::string::npos) {
    // YAML 1.1 readers take 1e-06 for text and 1.0e-06 for a number.
    text.insert(std::min(text.find('e'), text.size()), ".0");
  }
  return text;
}

}  // namespace taper::param::detail
