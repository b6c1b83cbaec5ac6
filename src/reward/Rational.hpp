// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace taper {

// A whole number from 0 on, of any size.
class Natural {
 public:
  Natural() = default;
  explicit Natural(std::uint32_t small);  // below 10^9
  // Of decimal digits and nothing else.
  static Natural from_digits(std::string_view digits);
  static Natural power_of_ten(std::size_t exponent);

  bool is_zero() const { return limbs_.empty(); }

  friend Natural operator+(const Natural& a, const Natural& b);
  friend Natural operator*(const Natural& a, const Natural& b);
  friend bool operator==(const Natural&, const Natural&) = default;
  friend bool operator<(const Natural& a, const Natural& b);

 private:
  void trim();

  std::vector<std::uint32_t> limbs_;  // base 10^9, least significant first; the last one is not 0
};

// A fraction, not reduced: equality is by cross products.
struct Rational {
  bool negative = false;
  Natural numerator, denominator{1};  // the latter is not 0
  bool is_percent = false;            // written with a percent sign; the value is without it

  friend bool operator==(const Rational& a, const Rational& b);
};

// The number that a final answer in LaTeX or plain text is: integers (1{,}000 and 1,000 too),
// decimals (also 0.\overline{3}), fractions (\frac{1}{2}, \frac12, 1/2), mixed numbers (2\frac12,
// 2 1/2), with signs, percent signs, dollar signs, degrees, a unit in \text{} or \mathrm{} behind
// it and a short left side "x =" before it. Nothing where it is anything else, or longer than
// kMostDigits.
std::optional<Rational> parse_rational(std::string_view answer);

inline constexpr std::size_t kMostDigits = 4000;

}  // namespace taper
