// SPDX-License-Identifier: Apache-2.0
#include "train/Balance.hpp"

#include <algorithm>

#include "base/Log.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

double ratio_of(int speed) {
  return static_cast<double>(speed) / kSpeedOne;
}

}  // namespace

Balance::Balance(const BalanceOptions& options, const Ranks& ranks)
    : options_(options), ranks_(ranks), speeds_(ranks.size(), options.margin) {}

void Balance::note(const TrainedWork& mine) {
  work_.resize(static_cast<std::size_t>(ranks_.size()));
  all_gather(ranks_.world(), work_, std::vector<TrainedWork>{mine});
  speeds_.note(work_);
  report(speeds_.slow_ranks());
}

void Balance::report(const std::vector<int>& slow) {
  const auto name = [&](int rank) {
    return "rank " + std::to_string(rank) + " (" +
           ranks_.hosts.ranks[static_cast<std::size_t>(rank)].host + ")";
  };
  if (ranks_.rank() == 0) {
    for (const int rank : slow)
      if (!std::ranges::binary_search(known_slow_, rank))
        TAPER_WARN(name(rank) << " computes at "
                              << format_text("%.2f", ratio_of(speeds_.of_rank(rank)))
                              << " of the median speed in training"
                              << (options_.mode == BalanceMode::kOn
                                      ? "; it gets less to train"
                                      : " (with Balance/Mode on it would get less to train)"));
    for (const int rank : known_slow_)
      if (!std::ranges::binary_search(slow, rank))
        TAPER_INFO(name(rank) << (work_[static_cast<std::size_t>(rank)].rows > 0.0
                                      ? " computes as fast as the median again"
                                      : " had nothing to train of late; it gets its share again"));
  }
  known_slow_ = slow;
}

ReplicaSpeeds Balance::shares(const ModelLayout& layout) const {
  return options_.mode == BalanceMode::kOn ? speeds_.of_replicas(layout) : ReplicaSpeeds{};
}

MetricValues Balance::metrics() const {
  double longest = 0.0, sum = 0.0, ranks = 0.0;
  int slowest = kSpeedOne;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const TrainedWork& work = work_[static_cast<std::size_t>(rank)];
    slowest = std::min(slowest, speeds_.of_rank(rank));
    if (!(work.rows > 0.0)) continue;
    longest = std::max(longest, work.seconds);
    sum += work.seconds;
    ranks += 1.0;
  }
  return {{"balance/speed_min", ratio_of(slowest)},
          {"balance/imbalance", longest > 0.0 ? 1.0 - sum / ranks / longest : 0.0}};
}

void Balance::add_rows(RunFile& file, std::int64_t iteration) const {
  for (const int rank : known_slow_) {
    const TrainedWork& work = work_[static_cast<std::size_t>(rank)];
    file.add_record("balance", iteration,
                    {{"rank", std::int64_t{rank}},
                     {"speed", ratio_of(speeds_.of_rank(rank))},
                     {"rows", static_cast<std::int64_t>(work.rows)},
                     {"busy_s", work.seconds}});
  }
}

}  // namespace taper
