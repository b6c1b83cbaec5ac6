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

// A line through samples of ascending sizes that meets the smallest one exactly; its slope is the
// median of the slopes from the smallest to each of the others. At least two samples.
TransferLine fit_transfer(const std::vector<TransferSample>& samples);

// What changing to a tensor-parallel degree costs besides the steps themselves, in seconds.
struct MeasuredSwitch {
  int degree = 1;
  PairClass pair = PairClass::kSameNode;
  TransferLine kv_move;  // between the ranks of the merged group; unused at degree 1
  double groups = 0;     // finding the cached groups
  double weights = 0;    // making the views of the weights
};

// Measures the costs in the merged groups of the degree, all at the same time; only groups g with
// pairs[g] == pair count. Pages of `page_bytes` stand for those of the KV cache. Collective over
// the world.
MeasuredSwitch measure_switch(const Ranks& ranks, const PackedModel& weights,
                              const ModelParallel& parallel, int degree, PairClass pair,
                              const std::vector<PairClass>& pairs, std::int64_t page_bytes);

// Seconds that all ranks take to agree on a change of layout: the plan comes from rank 0, and they
// meet (Meeting.hpp) with `sequences` running sequences at each rank. The same on all ranks.
// Collective over the world.
double measure_meeting(const Ranks& ranks, int sequences);

}  // namespace taper
