// SPDX-License-Identifier: Apache-2.0
#include "draft/DraftReach.hpp"

#include <algorithm>
#include <cmath>

namespace taper {

void DraftReach::add(int drafted, int accepted, std::span<const double> beyond) {
  // About the last 64 sequences. Weights stay far from the largest double.
  constexpr double kGrowth = 64.0 / 63, kMost = 1e100;
  weight_ *= kGrowth;
  sequences_ += weight_;
  constexpr int kLengths = DraftShares::kLengths;
  for (int i = 0; i < std::min(drafted, kLengths); ++i) drafted_[i] += weight_;
  for (int i = 0; i < std::min(accepted, kLengths); ++i) accepted_[i] += weight_;
  for (int i = drafted; i < std::min(drafted + static_cast<int>(beyond.size()), kLengths); ++i) {
    drafted_[i] += weight_;
    accepted_[i] += weight_ * beyond[i - drafted];
  }
  if (weight_ < kMost) return;
  sequences_ /= weight_;
  for (double& count : drafted_) count /= weight_;
  for (double& count : accepted_) count /= weight_;
  weight_ = 1;
}

DraftShares DraftReach::shares() const {
  DraftShares shares;
  if (sequences_ == 0) return shares;
  const auto share = [&](double count) {
    return clamped<std::uint8_t>(std::llround(DraftShares::kShareOne * count / sequences_));
  };
  for (int i = 0; i < DraftShares::kLengths; ++i) {
    shares.drafted[i] = share(drafted_[i]);
    shares.accepted[i] = share(accepted_[i]);
  }
  shares.drafted[0] = std::max<std::uint8_t>(1, shares.drafted[0]);
  return shares;
}

}  // namespace taper
