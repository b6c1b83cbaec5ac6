// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/MetricValues.hpp"
#include "results/RunFile.hpp"
#include "session/Ranks.hpp"
#include "train/RankSpeeds.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// Slow ranks of a training job: who they are, and what is recorded and said of them.
class Balance {
 public:
  // Refers to the ranks.
  Balance(const BalanceOptions& options, const Ranks& ranks);

  bool is_on() const { return options_.is_on(); }
  // The ranks have trained another iteration; `mine` is the work of this one. Says in the log who
  // has become slow, and who is slow no more. Collective over the ranks.
  void note(const TrainedWork& mine);
  // What the replicas of a layout are to get; empty: all alike.
  ReplicaSpeeds shares(const ModelLayout& layout) const;

  // Of the iteration that was noted last: balance/speed_min and balance/imbalance, the share of the
  // ranks' time in which those with work waited for the slowest one. The same on all ranks.
  MetricValues metrics() const;
  // Rows of the table /balance, of the slow ranks.
  void add_rows(RunFile& file, std::int64_t iteration) const;

 private:
  void report(const std::vector<int>& slow);

  BalanceOptions options_;
  const Ranks& ranks_;
  RankSpeeds speeds_;
  std::vector<TrainedWork> work_;  // by rank
  std::vector<int> known_slow_;
};

}  // namespace taper
