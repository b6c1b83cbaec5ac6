// SPDX-License-Identifier: Apache-2.0
//
// Collectives on floats in the memory of GPUs, over NCCL. They are queued on a stream and return at
// once; buffers must stay until it has come so far. Nothing is added in an order that NCCL chooses.
// The group must be connected (Group::devices) and not null.
#pragma once

#include <cstdint>
#include <span>

#include "comm/Group.hpp"

struct CUstream_st;

namespace taper::nccl {

// out = the `in` of all ranks in rank order; counts[r] floats come from rank r. Collective over the
// group.
void all_gather_v(const Group& group, CUstream_st* stream, float* out, const float* in,
                  std::span<const std::int64_t> counts);

// Rank r receives the r-th piece of `in` of each rank. in_counts[r] floats go to rank r,
// out_counts[r] come from it, in rank order without gaps. Collective over the group.
void all_to_all_v(const Group& group, CUstream_st* stream, float* out,
                  std::span<const std::int64_t> out_counts, const float* in,
                  std::span<const std::int64_t> in_counts);

// A stretch of floats that goes to a rank of the group, or comes from it.
struct Stretch {
  int rank = 0;
  const float* data = nullptr;
  std::int64_t count = 0;
};
// Receives and sends any number of stretches, those between two ranks in the same order on both.
// `name` stands in reports. Collective over the group.
void exchange(const Group& group, const char* name, CUstream_st* stream,
              std::span<const Stretch> received, std::span<const Stretch> sent);

// Element-wise largest over the ranks, in place. Not for NaN. Collective over the group.
void all_reduce_max(const Group& group, CUstream_st* stream, float* data, std::int64_t count);

// Makes the connections that these operations need, by one float each: NCCL would make them, and
// take memory, when they are first used, which may be in a recording. Waits. Throws Error if NCCL
// fails. Collective over the group.
void warm_up(const Group& group);

}  // namespace taper::nccl
