// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace taper {

// Whether two final answers say the same. Numbers are compared exactly, as fractions of integers of
// up to 38 digits: 1/2, 0.5, 2/4, \frac12 and 50\% are one number (Rational.hpp). With a percent
// sign on one side alone, the number counts as it stands, too, as in MATH: 50\% is also 50. Tuples,
// intervals and lists of the same brackets are compared part by part, in their order. All else,
// longer numbers too, is compared by its spelling (normalize_math()): no algebra is done.
bool same_math_answer(std::string_view a, std::string_view b);

}  // namespace taper
