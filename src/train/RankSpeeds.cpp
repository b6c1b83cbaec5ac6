// SPDX-License-Identifier: Apache-2.0
#include "train/RankSpeeds.hpp"

#include <algorithm>
#include <cmath>

namespace taper {
namespace {

// What is left of an iteration's weight after the next one: half after three.
const double kFading = std::exp2(-1.0 / 3.0);
// Beyond that a rank is not slow but at something else.
constexpr int kLargest = 16 * kSpeedOne, kSmallest = kSpeedOne / 16;

// Of an even number the smaller of the two in the middle; 0 if nothing is known.
double median_of_known(const std::vector<double>& seconds) {
  std::vector<double> known;
  for (const double s : seconds)
    if (s > 0.0) known.push_back(s);
  if (known.empty()) return 0.0;
  const auto median = known.begin() + static_cast<std::ptrdiff_t>((known.size() - 1) / 2);
  std::nth_element(known.begin(), median, known.end());
  return *median;
}

}  // namespace

RankSpeeds::RankSpeeds(int ranks, double margin)
    : margin_(margin), seconds_per_row_(static_cast<std::size_t>(ranks), 0.0) {}

void RankSpeeds::note(std::span<const TrainedWork> work) {
  for (std::size_t r = 0; r < seconds_per_row_.size(); ++r) {
    double& known = seconds_per_row_[r];
    double now = work[r].seconds / work[r].rows;
    // A rank that was too slow to get anything is tried again as its slowness fades.
    if (!(work[r].rows > 0.0) && known > 0.0) now = median_;
    if (!(now > 0.0) || !std::isfinite(now)) continue;
    known = known == 0.0 ? now : kFading * known + (1.0 - kFading) * now;
  }
  median_ = median_of_known(seconds_per_row_);
}

int RankSpeeds::of_rank(int rank) const {
  const double mine = seconds_per_row_[static_cast<std::size_t>(rank)];
  if (mine == 0.0) return kSpeedOne;
  const double speed = median_ / mine;
  if (std::abs(speed - 1.0) <= margin_) return kSpeedOne;
  return std::clamp(static_cast<int>(std::lround(speed * kSpeedOne)), kSmallest, kLargest);
}

ReplicaSpeeds RankSpeeds::of_replicas(const ModelLayout& layout) const {
  ReplicaSpeeds speeds(static_cast<std::size_t>(layout.grid.dp), kLargest);
  for (int rank = 0; rank < layout.grid.ranks(); ++rank) {
    int& speed = speeds[static_cast<std::size_t>(layout.grid.replica_of(rank))];
    speed = std::min(speed, of_rank(layout.first + rank));
  }
  const bool are_equal =
      std::all_of(speeds.begin(), speeds.end(), [&](int speed) { return speed == speeds.front(); });
  return are_equal ? ReplicaSpeeds{} : speeds;
}

std::vector<int> RankSpeeds::slow_ranks() const {
  std::vector<int> slow;
  for (int rank = 0; rank < std::ssize(seconds_per_row_); ++rank)
    if (of_rank(rank) < kSpeedOne) slow.push_back(rank);
  return slow;
}

}  // namespace taper
