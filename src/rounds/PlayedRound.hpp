// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/Replay.hpp"
#include "rounds/PromptRounds.hpp"

namespace taper {

// A round over responses whose lengths are known.
struct PlayedRound {
  // Responses that lose a race end where everybody would know it, as aborted.
  ReplayTrace trace;
  std::vector<ResponseId> kept;   // prompts counted from 0 in the round
  std::vector<int> longest_kept;  // by prompt, of the longest kept response; 0: none
};

// Number of a prompt in the stream and sample: tokens of the response.
using ResponseLength = std::function<int(std::int64_t number, int sample)>;

// `like` says how generations are made; prompts have `prompt` tokens.
PlayedRound play_round(const Round& round, const Workload& like, std::int64_t prompt,
                       const ResponseLength& length);

}  // namespace taper
