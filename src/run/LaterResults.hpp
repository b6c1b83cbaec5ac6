// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "results/RunDirectory.hpp"
#include "run/CheckpointSchedule.hpp"

namespace taper {

// What an output directory has of iterations after `finished`, as people read it: "checkpoints/
// iter_000004; rollouts of iterations 3 to 8; metrics of iterations 3 to 8". Empty if there is
// nothing. `unit` is what the run calls an iteration. A run that starts there removes it all: those
// iterations will come again. Reads only; for one rank.
std::string later_results(const RunDirectory& output, std::int64_t finished,
                          const std::string& unit);

// Whether a start removes later results, or would.
enum class Removal { kNow, kPlanned };

// Says in the log what later_results() finds, if anything. Reads only; for one rank.
void report_later_results(const RunDirectory& output, std::int64_t finished, Removal removal,
                          const std::string& unit);

// Throws Error (kBadInput) if a directory without checkpoints has results that no run leaves
// which was killed before its first one: they begin later than with iteration 1, as those of a run
// that begins with another run's checkpoint and saves it; or they reach an iteration after which
// their run saved one, by the settings in its run.h5 or, if that cannot be read, by those of
// this run (`now`). Somebody has removed the checkpoints, and to start afresh would remove the
// results unasked. Also if a line of metrics.jsonl is broken: it cannot tell. Reads only; for
// one rank.
void require_no_lost_checkpoints(const RunDirectory& output, const CheckpointSchedule& now,
                                 const std::string& unit);

}  // namespace taper
