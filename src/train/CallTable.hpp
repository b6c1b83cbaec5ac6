// SPDX-License-Identifier: Apache-2.0
//
// Which ranks did what when, of iterations whose models are not all on all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/Group.hpp"
#include "results/RunFile.hpp"
#include "rl/ModelCalls.hpp"

namespace taper {

// A call as its ranks have made it: from the first that began to the last that ended, and the mean
// times that they were at it, and inside of collectives for it. In seconds since the iteration
// began.
struct DoneCall {
  std::string name, model;
  ModelLayout layout;
  double begin_s = 0.0, end_s = 0.0, busy_s = 0.0, wait_s = 0.0;
};

// The calls of all ranks in the order in which they began; on rank 0, elsewhere none. Collective
// over `world`.
std::vector<DoneCall> gather_calls(const Group& world, const std::vector<CallSpan>& mine);

// A row of the table /calls for each.
void add_calls(RunFile& file, std::int64_t iteration, const std::vector<DoneCall>& calls);

}  // namespace taper
