// SPDX-License-Identifier: Apache-2.0
#include "io/JsonNumber.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "base/Error.hpp"

namespace taper {

std::string log_prob_text(float value) {
  TAPER_VALIDATE(std::isfinite(value),
                 "a log-prob is " << value << " (are all weights of the model finite?)");
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

}  // namespace taper
