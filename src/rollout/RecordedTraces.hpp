// SPDX-License-Identifier: Apache-2.0
//
// What a recorded run tells about generations that are to be played again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/DraftTable.hpp"
#include "planner/Replay.hpp"

namespace taper {

// The generations of `run`, a directory of a run or a rollout file, by iteration. The limit of new
// tokens is the longest response of all. `option` names the path in errors. On one rank. Throws
// Error if there are no rollout files, if one is damaged, or if its responses are not all that were
// generated.
std::vector<ReplayTrace> read_traces(const std::string& option, const std::filesystem::path& run,
                                     int max_running);

// How far the drafts of a run have reached, by the number of sequences in a step; empty if it has
// recorded none. Only totals are recorded: all sequences count as having drafted equally much.
DraftTable read_drafts(const std::filesystem::path& run);

}  // namespace taper
