// SPDX-License-Identifier: Apache-2.0
#include "reward/Rational.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/Text.hpp"

namespace taper {
namespace {
constexpr std::uint32_t kBase = 1000000000;
constexpr std::size_t kLimbDigits = 9;
}  // namespace

Natural::Natural(std::uint32_t small) {
  if (small > 0) limbs_ = {small};
}

Natural Natural::from_digits(std::string_view digits) {
  Natural n;
  while (!digits.empty()) {
    const std::size_t count = std::min(kLimbDigits, digits.size());
    std::uint32_t limb = 0;
    for (const char c : digits.substr(digits.size() - count))
      limb = limb * 10 + static_cast<std::uint32_t>(c - '0');
    n.limbs_.push_back(limb);
    digits.remove_suffix(count);
  }
  n.trim();
  return n;
}

Natural Natural::power_of_ten(std::size_t exponent) {
  return from_digits("1" + std::string(exponent, '0'));
}

void Natural::trim() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
}

Natural operator+(const Natural& a, const Natural& b) {
  Natural sum;
  std::uint32_t carry = 0;
  for (std::size_t i = 0; i < std::max(a.limbs_.size(), b.limbs_.size()) || carry > 0; ++i) {
    std::uint32_t limb = carry;
    if (i < a.limbs_.size()) limb += a.limbs_[i];
    if (i < b.limbs_.size()) limb += b.limbs_[i];
    carry = limb >= kBase ? 1 : 0;
    sum.limbs_.push_back(limb - carry * kBase);
  }
  return sum;
}

Natural operator*(const Natural& a, const Natural& b) {
  Natural product;
  product.limbs_.assign(a.limbs_.size() + b.limbs_.size(), 0);
  for (std::size_t i = 0; i < a.limbs_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.limbs_.size() || carry > 0; ++j) {
      const std::uint64_t factor = j < b.limbs_.size() ? b.limbs_[j] : 0;
      const std::uint64_t limb = product.limbs_[i + j] + a.limbs_[i] * factor + carry;
      product.limbs_[i + j] = static_cast<std::uint32_t>(limb % kBase);
      carry = limb / kBase;
    }
  }
  product.trim();
  return product;
}

bool operator<(const Natural& a, const Natural& b) {
  if (a.limbs_.size() != b.limbs_.size()) return a.limbs_.size() < b.limbs_.size();
  return std::lexicographical_compare(a.limbs_.rbegin(), a.limbs_.rend(), b.limbs_.rbegin(),
                                      b.limbs_.rend());
}

bool operator==(const Rational& a, const Rational& b) {
  if (a.numerator.is_zero() || b.numerator.is_zero())
    return a.numerator.is_zero() && b.numerator.is_zero();
  return a.negative == b.negative && a.numerator * b.denominator == b.numerator * a.denominator;
}

namespace {

// Reads one number from its beginning; every function says whether it did, and is not called again
// after a failure.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::optional<Rational> parse() {
    Rational value;
    read_sign(value);
    skip("\\$") || skip("$");
    skip_blanks();
    if (!value.negative) read_sign(value);  // $-5
    if (!read_magnitude(value)) return std::nullopt;
    skip_blanks();
    value.is_percent = skip("\\%") || skip("%");
    skip_unit();
    return rest_.empty() ? std::optional(value) : std::nullopt;
  }

 private:
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  bool skip_blanks() {
    bool any = false;
    while (skip(" ") || skip("\n") || skip("\t") || skip("\\,") || skip("\\;") || skip("\\:") ||
           skip("\\ ") || skip("~") || skip("\\!"))
      any = true;
    return any;
  }

  void read_sign(Rational& value) {
    skip_blanks();
    if (skip("-") || skip("\xE2\x88\x92"))  // U+2212, the minus sign
      value.negative = true;
    else
      skip("+");
    skip_blanks();
  }

  void skip_unit() {
    skip_blanks();
    skip("^\\circ") || skip("^{\\circ}") || skip("\xC2\xB0") || skip("\\$") || skip("$");
    skip_blanks();
    if (skip("\\text{") || skip("\\mathrm{") || skip("\\mbox{") || skip("\\textrm{")) {
      const auto close = rest_.find('}');
      if (close == std::string_view::npos || rest_.find('}', close + 1) != std::string_view::npos ||
          rest_.find_first_of("0123456789") < close)
        return;
      rest_.remove_prefix(close + 1);
    }
    skip_blanks();
    skip(".");  // of the sentence
    skip_blanks();
  }

  // number | fraction | number / number | number fraction | number blanks number / number
  bool read_magnitude(Rational& value) {
    if (read_fraction(value)) return true;
    if (!read_number(value)) return false;
    const bool is_whole = is_whole_number(value);
    Rational part;
    const bool apart = skip_blanks();
    if (is_whole && read_fraction(part)) return add_part(value, part);
    if (is_whole && apart && !rest_.empty() && is_digit(rest_.front()))
      return read_number(part) && is_whole_number(part) && read_ratio(part) &&
             add_part(value, part);
    if (!rest_.starts_with('/')) return true;
    return read_ratio(value);
  }

  static bool is_whole_number(const Rational& value) { return value.denominator == Natural(1); }

  // "/ number" behind a number.
  bool read_ratio(Rational& value) {
    skip_blanks();
    if (!skip("/")) return false;
    skip_blanks();
    Rational below;
    if (skip("-")) value.negative = !value.negative;
    return read_number(below) && divide(value, below);
  }

  // Of a mixed number: a proper fraction, else a product may be meant.
  static bool add_part(Rational& value, const Rational& part) {
    if (part.negative || !(part.numerator < part.denominator)) return false;
    value.numerator = value.numerator * part.denominator + part.numerator;
    value.denominator = part.denominator;
    return true;
  }

  static bool divide(Rational& value, const Rational& below) {
    if (below.numerator.is_zero()) return false;
    value.numerator = value.numerator * below.denominator;
    value.denominator = value.denominator * below.numerator;
    return true;
  }

  bool read_fraction(Rational& value) {
    if (!(skip("\\frac") || skip("\\dfrac") || skip("\\tfrac") || skip("\\cfrac"))) return false;
    Rational above, below;
    if (!read_argument(above) || !read_argument(below) || !divide(above, below)) {
      rest_ = "x";  // a fraction, but not one that we understand
      return false;
    }
    value.negative = value.negative != (above.negative != below.negative);
    value.numerator = above.numerator;
    value.denominator = above.denominator;
    return true;
  }

  // A digit, or a number in braces.
  bool read_argument(Rational& value) {
    skip_blanks();
    if (!rest_.empty() && is_digit(rest_.front())) {
      value.numerator = Natural::from_digits(rest_.substr(0, 1));
      rest_.remove_prefix(1);
      return true;
    }
    if (!skip("{")) return false;
    read_sign(value);
    if (!read_number(value)) return false;
    skip_blanks();
    return skip("}");
  }

  std::string_view read_digits() {
    std::size_t count = 0;
    while (count < rest_.size() && is_digit(rest_[count])) ++count;
    const auto digits = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return digits;
  }

  // Digits before the point, with commas between thousands or without.
  std::string read_whole() {
    std::string digits(read_digits());
    if (digits.empty() || digits.size() > 3) return digits;
    for (;;) {
      const std::string_view before = rest_;
      if (!(skip("{,}") || skip(",\\!") || skip(",") || skip("\\,"))) return digits;
      const auto group = read_digits();
      if (group.size() != 3) {
        rest_ = before;
        return digits;
      }
      digits += group;
    }
  }

  bool read_number(Rational& value) {
    std::string digits = read_whole();
    std::size_t behind = 0;
    std::string_view repeated;
    if (rest_.starts_with('.') && (!digits.empty() || rest_.size() > 1)) {
      const std::string_view before = rest_;
      rest_.remove_prefix(1);
      const auto decimals = read_digits();
      behind = decimals.size();
      digits += decimals;
      if (skip("\\overline{")) {
        repeated = read_digits();
        if (repeated.empty() || !skip("}")) return false;
      }
      if (behind == 0 && repeated.empty()) rest_ = before;  // "5.": the end of a sentence
    }
    if (digits.empty() && repeated.empty()) return false;
    if (digits.size() + repeated.size() > kMostDigits) return false;
    value.numerator = Natural::from_digits(digits);
    value.denominator = Natural::power_of_ten(behind);
    if (!repeated.empty()) {  // n + r / (10^k - 1), over the same power of ten
      const Natural nines = Natural::from_digits(std::string(repeated.size(), '9'));
      value.numerator = value.numerator * nines + Natural::from_digits(repeated);
      value.denominator = value.denominator * nines;
    }
    return true;
  }

  std::string_view rest_;
};

// Without what is around a number and has no meaning: "x =", \left, \right, one pair of braces.
std::string bare(std::string_view answer) {
  std::string text = trim(answer);
  for (const char* word : {"\\displaystyle", "\\left", "\\right"}) remove_all(text, word);
  const auto equals = text.find('=');
  if (equals != std::string::npos && text.find('=', equals + 1) == std::string::npos &&
      trim(text.substr(0, equals)).size() <= 2)
    text.erase(0, equals + 1);
  if (text.starts_with('$') && text.ends_with('$') && text.size() > 2)
    text = text.substr(1, text.size() - 2);
  return trim(text);
}

}  // namespace

std::optional<Rational> parse_rational(std::string_view answer) {
  if (answer.size() > 4 * kMostDigits) return std::nullopt;
  return Parser(bare(answer)).parse();
}

}  // namespace taper
