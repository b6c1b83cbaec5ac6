// SPDX-License-Identifier: Apache-2.0
//
// Sections of run files that several commands have, or that are long enough for a file of their
// own.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "driver/Options.hpp"
#include "param/Schema.hpp"

namespace taper {

// The section stays open for what else a command says of the job.
param::Section describe_run(param::Section& schema, std::uint64_t& seed, double& hang_seconds);
void describe_deadline(param::Section& run, double& margin);
void describe_model(param::Section& schema, ModelOptions& options);
void describe_passes(param::Section& section, PassOptions& options);

// Where a cosine may end: at a step that is given, or, with 0, at the end of the run.
enum class ScheduleEnd { kGiven, kOfRun };

// Into a section that may have more; `section` is its name.
void describe_schedule(param::Section& s, ScheduleOptions& lr, ScheduleEnd end,
                       const std::string& section);
void describe_optimizer(param::Section& schema, AdamWOptions& options, ScheduleOptions& lr,
                        ScheduleEnd end);

void describe_rewards(param::Section& schema, std::deque<RewardOptions>& rewards);

}  // namespace taper
