// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "io/RolloutFile.hpp"

namespace taper::detail {

// The rows [first_row, first_row + records.size()) of the global order.
struct RolloutShare {
  std::int64_t first_row = 0;
  std::int64_t total_rows = 0;
  std::vector<RolloutRecord> records;
};

// Collective over comm. Sorts the records of all ranks by (group, sample) and deals them out in
// equal, contiguous shares. What every rank gets to know of all others is one key of 16 bytes per
// sample.
RolloutShare to_global_order(MPI_Comm comm, std::span<const RolloutRecord> mine);

}  // namespace taper::detail
