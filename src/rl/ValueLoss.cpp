// SPDX-License-Identifier: Apache-2.0
#include "rl/ValueLoss.hpp"

#include <algorithm>
#include <limits>

namespace taper {
double add_value_loss(double clip, const ValueInput& token, double w, ValueSums& sums) {
  const double value = token.value, old_value = token.old_value;
  const double reach = clip > 0.0 ? clip : std::numeric_limits<double>::infinity();
  const double held = std::clamp(value, old_value - reach, old_value + reach);
  const double error = value - token.target, held_error = held - token.target;
  sums.value += value;
  sums.tokens += 1.0;
  if (held_error * held_error > error * error) {  // only if the value is outside: held is fixed
    sums.clipped += 1.0;
    sums.loss += w * 0.5 * held_error * held_error;
    return 0.0;
  }
  sums.loss += w * 0.5 * error * error;
  return w * error;
}

double explained_variance(const SampleSet& samples) {
  const double count = sum_over_tokens(samples, [](auto, auto) { return 1.0; });
  if (count < 2.0) return 0.0;
  const auto variance = [&](const auto& figure) {
    const auto of = [&](std::size_t k, std::size_t t) { return figure(samples.here()[k], t); };
    const double mean = sum_over_tokens(samples, of) / count;
    return sum_over_tokens(samples,
                           [&](std::size_t k, std::size_t t) {
                             return (of(k, t) - mean) * (of(k, t) - mean);
                           }) /
           (count - 1.0);
  };
  const auto target = [](const Sample& s, std::size_t t) { return double{s.returns[t]}; };
  const auto error = [](const Sample& s, std::size_t t) {
    return double{s.returns[t]} - double{s.values[t]};
  };
  return 1.0 - variance(error) / (variance(target) + 1e-5);
}

}  // namespace taper
