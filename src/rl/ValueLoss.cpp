// SPDX-License-Identifier: Apache-2.0
#include "rl/ValueLoss.hpp"

#include <algorithm>
#include <limits>

namespace taper {
namespace {

// Twice over the numbers: the mean first.
template <class Visit>
double variance(double count, const Visit& visit_all) {
  double mean = 0.0, squares = 0.0;
  visit_all([&](double x) { mean += x / count; });
  visit_all([&](double x) { squares += (x - mean) * (x - mean); });
  return squares / (count - 1.0);
}

}  // namespace

double add_value_loss(double clip, const ValueInput& token, double w, ValueSums& sums) {
  const double value = token.value, old_value = token.old_value;
  const double reach = clip > 0.0 ? clip : std::numeric_limits<double>::infinity();
  const double held = std::clamp(value, old_value - reach, old_value + reach);
  const double error = value - token.target, held_error = held - token.target;
  sums.value += value;
  sums.tokens += 1.0;
  if (held_error * held_error > error * error) {  // only where the value is outside: held is fixed
    sums.clipped += 1.0;
    sums.loss += w * 0.5 * held_error * held_error;
    return 0.0;
  }
  sums.loss += w * 0.5 * error * error;
  return w * error;
}

double explained_variance(const std::vector<Sample>& samples) {
  double count = 0.0;
  for (const Sample& s : samples) count += static_cast<double>(s.loss_tokens());
  if (count < 2.0) return 0.0;
  const auto over = [&](const auto& figure) {
    return variance(count, [&](const auto& visit) {
      for (const Sample& s : samples)
        for (std::size_t t = 0; t < s.response.size(); ++t)
          if (s.carries_loss(t)) visit(figure(s, t));
    });
  };
  const auto target = [](const Sample& s, std::size_t t) { return double{s.returns[t]}; };
  const auto error = [](const Sample& s, std::size_t t) {
    return double{s.returns[t]} - double{s.values[t]};
  };
  return 1.0 - over(error) / (over(target) + 1e-5);
}

}  // namespace taper
