// SPDX-License-Identifier: Apache-2.0
#include "reward/Rational.hpp"

#include <algorithm>
#include <regex>
#include <string>
#include <utility>

#include "base/Text.hpp"

namespace taper {
namespace {

using Int = __int128;

// Arithmetic that notes what does not fit. From then on its results mean nothing.
struct Exact {
  static constexpr Int kMost = Int{10'000'000'000'000'000'000u} * 10'000'000'000'000'000'000u;
  bool fits = true;

  Int keep(Int value) {
    fits = fits && -kMost < value && value < kMost;
    return fits ? value : 0;
  }
  Int times(Int a, Int b) {
    Int product = 0;
    return keep(__builtin_mul_overflow(a, b, &product) ? kMost : product);
  }
  Int plus(Int a, Int b) {
    Int sum = 0;
    return keep(__builtin_add_overflow(a, b, &sum) ? kMost : sum);
  }
  Int integer(std::string_view digits) {
    Int value = 0;
    for (const char c : digits)
      if (c != ',') value = plus(times(value, 10), c - '0');
    return value;
  }
  Rational over(const Rational& a, const Rational& b) {
    return {times(a.numerator, b.denominator), times(a.denominator, b.numerator)};
  }
  // "1,234.5\overline{6}"
  Rational number(std::string text) {
    const auto bar = text.find('\\');
    const std::string repeated =
        bar == std::string::npos ? "" : text.substr(bar + 10, text.size() - bar - 11);
    text.resize(std::min(bar, text.size()));
    const auto point = std::min(text.find('.'), text.size() - 1);
    const std::string places(text.size() - 1 - point, '0');
    remove_all(text, ".");
    const Rational value{integer(text), integer("1" + places)};
    if (repeated.empty()) return value;
    const Int nines = integer(std::string(repeated.size(), '9'));
    return {plus(times(value.numerator, nines), integer(repeated)),
            times(value.denominator, nines)};
  }
  Rational signed_number(const std::string& sign, const std::string& text) {
    const Rational value = number(text);
    return {sign == "-" ? -value.numerator : value.numerator, value.denominator};
  }
  std::optional<Rational> reduced(const Rational& value) {
    Int a = value.numerator, b = value.denominator;
    if (b == 0) return std::nullopt;
    while (b != 0) a = std::exchange(b, a % b);
    if ((a < 0) != (value.denominator < 0)) a = -a;  // the sign goes to the numerator
    if (!fits) return std::nullopt;
    return Rational{value.numerator / a, value.denominator / a};
  }
};

// Without what is around a number and has no meaning ("x =", \left, \right, one pair of dollars),
// and in one spelling: a blank of any kind is one " ".
std::string plain(std::string_view answer) {
  static const std::regex kSeparator(R"(([0-9])\\,(?=[0-9]{3}))");  // 1\,000
  std::string text(answer);
  for (const char* word : {"\\displaystyle", "\\left", "\\right"}) remove_all(text, word);
  const auto equals = text.find('=');
  if (equals != std::string::npos && text.find('=', equals + 1) == std::string::npos &&
      trim(text.substr(0, equals)).size() <= 2)
    text.erase(0, equals + 1);
  text = trim(text);
  if (text.starts_with('$') && text.ends_with('$') && text.size() > 2)
    text = text.substr(1, text.size() - 2);
  replace_all(text, "\xE2\x88\x92", "-");  // U+2212, the minus sign
  replace_all(text, "\xC2\xB0", "^\\circ");
  for (const char* comma : {"{,}", ",\\!"}) replace_all(text, comma, ",");
  text = std::regex_replace(text, kSeparator, "$1,");
  for (const char* blank : {"\\,", "\\;", "\\:", "\\!", "\\ ", "~", "\n", "\t"})
    replace_all(text, blank, " ");
  while (text.find("  ") != std::string::npos) replace_all(text, "  ", " ");
  return trim(text);
}

std::regex grammar() {
  const std::string integer = "(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)",
                    bar = R"(\\overline\{[0-9]+\})",
                    decimals = "\\.(?:[0-9]+(?:" + bar + ")?|" + bar + ")",
                    number = "(" + integer + "(?:" + decimals + ")?|" + decimals + ")",
                    sign = "([-+]?) ?", dollar = R"(\\?\$)",
                    argument = R"( ?(?:([0-9])|\{ ?)" + sign + number + R"( ?\}))";
  return std::regex(
      "(?:" + sign + "(?:" + dollar + ")?|" + dollar + " ?([-+])) ?" +      // 1, 2
      "(?:(?:(" + integer + R"() ?)?\\[dtc]?frac)" + argument + argument +  // 3, 4 to 9
      "|(?:(" + integer + ") )?" + number + " ?/ ?(-?)" + number +          // 10, 11 to 13
      "|" + number + ")" +                                                  // 14
      R"( ?(\\?%)? ?(?:\^\\circ|\^\{\\circ\}|)" + dollar + ")?" +           // 15
      R"( ?(?:\\(?:text|mathrm|mbox|textrm)\{[^}0-9]*\})? ?\.?)");  // the point of the sentence
}

}  // namespace

std::optional<Rational> parse_rational(std::string_view answer) {
  static const std::regex kGrammar = grammar();
  if (answer.size() > kMostCharacters) return std::nullopt;  // std::regex recurses over them
  const std::string text = plain(answer);
  std::smatch m;
  if (!std::regex_match(text, m, kGrammar)) return std::nullopt;
  Exact exact;
  const auto argument = [&](int i) {
    return m[i].matched ? exact.number(m[i]) : exact.signed_number(m[i + 1], m[i + 2]);
  };
  Rational value;
  if (m[14].matched)
    value = exact.number(m[14]);
  else if (m[11].matched)
    value = exact.over(exact.number(m[11]), exact.signed_number(m[12], m[13]));
  else
    value = exact.over(argument(4), argument(7));
  if (const auto& whole = m[3].matched ? m[3] : m[10]; whole.matched) {
    // A proper fraction, else a product may be meant.
    if (value.numerator < 0 || value.numerator >= value.denominator) return std::nullopt;
    value.numerator =
        exact.plus(value.numerator, exact.times(exact.integer(whole.str()), value.denominator));
  }
  if (m[1] == "-" || m[2] == "-") value.numerator = -value.numerator;
  auto result = exact.reduced(value);
  if (result) result->is_percent = m[15].matched;
  return result;
}

}  // namespace taper
