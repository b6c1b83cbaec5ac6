// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace taper {

// The loss of one pair of rewards, and its slopes by them.
struct PairLoss {
  double loss = 0.0;
  double by_chosen = 0.0, by_rejected = 0.0;
};

// -log sigmoid(chosen - rejected - margin) + center * (chosen + rejected)^2: the negative
// log-likelihood of Bradley and Terry's model that the chosen response wins, by the margin, and a
// term that keeps rewards around zero, which differences alone do not determine (Eisenstein et al.
// 2023, arXiv 2312.09244).
PairLoss preference_loss(double chosen, double rejected, double margin, double center);

}  // namespace taper
