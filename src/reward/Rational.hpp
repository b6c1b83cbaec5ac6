// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace taper {

// A fraction in lowest terms: equal numbers have equal parts.
struct Rational {
  __int128 numerator = 0, denominator = 1;  // the latter is positive
  bool is_percent = false;                  // written with a percent sign; the value is without it

  friend bool operator==(const Rational& a, const Rational& b) {
    return a.numerator == b.numerator && a.denominator == b.denominator;
  }
};

// The number that a final answer in LaTeX or plain text is: integers (1{,}000 and 1,000 too),
// decimals (also 0.\overline{3}), fractions (\frac{1}{2}, \frac12, 1/2), mixed numbers (2\frac12,
// 2 1/2), with signs, percent signs, dollar signs, degrees, a unit in \text{} or \mathrm{} after
// it and a short left side "x =" before it. Nothing if it is anything else, if a numerator or
// denominator on the way has more than 38 digits, or beyond kMostCharacters.
std::optional<Rational> parse_rational(std::string_view answer);

inline constexpr std::size_t kMostCharacters = 400;

}  // namespace taper
