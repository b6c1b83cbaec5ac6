// SPDX-License-Identifier: Apache-2.0
//
// The names that held-out figures have in metrics.jsonl and run.h5: "val/score/mean" of the plain
// set, "val/<set>/avg@k" of a named one, "val/reward/<name>/mean" of rewards.
#pragma once

#include <string>

namespace taper {

inline constexpr const char* kPlainHeldOutScore = "val/score/mean";
inline constexpr const char* kHeldOutRewards = "val/reward";

// The name that a figure has after the last iteration of a run: "val/score/final",
// "val/<set>/final/avg@k", "val/final/reward/<name>/mean".
std::string final_name(const std::string& name);
bool is_final_name(const std::string& name);
// What a figure of a named set means, for its place in run.h5; empty for others, which the table of
// metrics has.
std::string held_out_meaning(const std::string& name);

}  // namespace taper
