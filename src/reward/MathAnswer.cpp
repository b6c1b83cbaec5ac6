// SPDX-License-Identifier: Apache-2.0
#include "reward/MathAnswer.hpp"

#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/Text.hpp"
#include "reward/Answers.hpp"
#include "reward/Rational.hpp"

namespace taper {
namespace {

constexpr int kMostNested = 8;

bool same_number(const Rational& a, const Rational& b) {
  if (a == b) return true;
  if (a.is_percent == b.is_percent) return false;
  const Rational &percent = a.is_percent ? a : b, &other = a.is_percent ? b : a;
  // The hundredth in lowest terms; one that does not fit is no number that we have.
  const int factor = std::gcd(static_cast<int>(percent.numerator % 100), 100);
  __int128 denominator = 0;
  return !__builtin_mul_overflow(percent.denominator, __int128{100 / factor}, &denominator) &&
         other == Rational{percent.numerator / factor, denominator};
}

// Texts between commas, with the brackets around all of them.
struct Parts {
  std::string open, close;
  std::vector<std::string> parts;
};

// Whether text[at] is a comma between parts: not one of "{,}".
bool is_separator(const std::string& text, std::size_t at) {
  return text[at] == ',' && !(at > 0 && text[at - 1] == '{' && text.substr(at, 2) == ",}");
}

// Nothing if there is one part only, or brackets do not fit.
std::optional<Parts> split(std::string_view answer) {
  Parts result;
  std::string text = trim(answer);
  for (const char* word : {"\\left", "\\right"}) remove_all(text, word);
  constexpr std::pair<const char*, const char*> kBrackets[] = {
      {"\\{", "\\}"}, {"(", ")"}, {"(", "]"}, {"[", ")"}, {"[", "]"}};
  for (const auto& [open, close] : kBrackets)
    if (text.size() > 3 && text.starts_with(open) && text.ends_with(close)) {
      result.open = open;
      result.close = close;
      text =
          text.substr(result.open.size(), text.size() - result.open.size() - result.close.size());
      break;
    }
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth < 0) return std::nullopt;
    if (depth > 0 || !is_separator(text, i)) continue;
    result.parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  if (depth != 0 || result.parts.empty()) return std::nullopt;
  result.parts.push_back(text.substr(begin));
  return result;
}

bool same(std::string_view a, std::string_view b, int nested) {
  const auto number_a = parse_rational(a), number_b = parse_rational(b);
  if (number_a && number_b) return same_number(*number_a, *number_b);
  if (nested < kMostNested) {
    const auto parts_a = split(a), parts_b = split(b);
    if (parts_a && parts_b && parts_a->open == parts_b->open && parts_a->close == parts_b->close &&
        parts_a->parts.size() == parts_b->parts.size()) {
      for (std::size_t i = 0; i < parts_a->parts.size(); ++i)
        if (!same(parts_a->parts[i], parts_b->parts[i], nested + 1)) return false;
      return true;
    }
  }
  return normalize_math(a) == normalize_math(b);
}

}  // namespace

bool same_math_answer(std::string_view a, std::string_view b) {
  return same(a, b, 0);
}

}  // namespace taper
