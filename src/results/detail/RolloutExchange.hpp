// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "results/RolloutFile.hpp"

namespace taper::detail {

// The rows [first_row, first_row + records.size()) of the global order, in the hands of one of the
// writers.
struct RolloutShare {
  int writers = 1;
  int writer = -1;  // which of them this rank is; -1: none
  std::int64_t first_row = 0;
  std::int64_t total_rows = 0;
  std::vector<RolloutRecord> records;
};

// Collective over comm. Sorts the records of all ranks by their ids and deals them out in
// equal, contiguous shares to as many writers as bytes_per_writer asks for, spread evenly over the
// ranks. What every rank gets to know of all others is one key of 16 bytes per sample.
RolloutShare to_global_order(MPI_Comm comm, std::span<const RolloutRecord> mine,
                             std::int64_t bytes_per_writer);

}  // namespace taper::detail
