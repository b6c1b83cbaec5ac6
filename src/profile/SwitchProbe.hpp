// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/ModelParallel.hpp"
#include "model/PackedModel.hpp"
#include "planner/LatencyProfile.hpp"
#include "session/Ranks.hpp"

namespace taper {

// Time of a transfer as a line over its bytes.
struct TransferLine {
  double latency = 0;           // seconds
  double bytes_per_second = 0;  // that one rank sends, all ranks of the group at the same time

  double seconds(double bytes) const { return latency + bytes / bytes_per_second; }
};

struct TransferSample {
  std::int64_t bytes = 0;  // sent by each rank
  double seconds = 0;      // median
};

// A line through samples of ascending sizes that is right at the largest and, above all, at the
// small ones: the latency is that of the smallest, the slope the median of those between it and the
// others. At least two samples.
TransferLine fit_transfer(const std::vector<TransferSample>& samples);

// What changing to a tensor-parallel degree costs besides the steps themselves, in seconds.
struct MeasuredSwitch {
  int degree = 1;
  PairClass pair = PairClass::kSameNode;
  TransferLine kv_move;  // between the ranks of the merged group; unused at degree 1
  double groups = 0;     // finding the cached groups
  double weights = 0;    // making the views of the weights
};

// Measures them in the merged groups of the degree, all at the same time; counts those with
// `pairs`[group] == pair. Pages of `page_bytes` stand for those of the KV cache. Collective over
// the world.
MeasuredSwitch measure_switch(const Ranks& ranks, const PackedModel& weights,
                              const ModelParallel& parallel, int degree, PairClass pair,
                              const std::vector<PairClass>& pairs, std::int64_t page_bytes);

// Seconds that a change of layout takes all ranks to agree upon: the plan comes from rank 0, and
// they meet (Meeting.hpp) with `sequences` running sequences at each rank. The same on all ranks.
// Collective over the world.
double measure_meeting(const Ranks& ranks, int sequences);

}  // namespace taper
