// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "optim/Schedule.hpp"
#include "optim/ShardedAdamW.hpp"
#include "param/Schema.hpp"

namespace taper {

// Where a cosine may end: at a step that is given, or, with 0, at the end of the run.
enum class ScheduleEnd { kGiven, kOfRun };

// A learning rate, into a section that may have more; `section` is its name.
void describe_schedule(param::Section& s, ScheduleOptions& lr, ScheduleEnd end,
                       const std::string& section);

// The section Optimizer: AdamW and its learning rate.
void describe_optimizer(param::Section& schema, AdamWOptions& options, ScheduleOptions& lr,
                        ScheduleEnd end);

}  // namespace taper
