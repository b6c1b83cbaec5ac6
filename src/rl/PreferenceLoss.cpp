// SPDX-License-Identifier: Apache-2.0
#include "rl/PreferenceLoss.hpp"

#include <cmath>

namespace taper {

PairLoss preference_loss(double chosen, double rejected, double margin, double center) {
  const double lead = chosen - rejected - margin, sum = chosen + rejected;
  // Neither form overflows: the exponent is never positive.
  const double small = std::exp(-std::abs(lead));
  const double loss = std::log1p(small) + (lead < 0.0 ? -lead : 0.0);
  const double lost = (lead < 0.0 ? 1.0 : small) / (1.0 + small);  // sigmoid(-lead)
  return {loss + center * sum * sum, 2.0 * center * sum - lost, 2.0 * center * sum + lost};
}

}  // namespace taper
