// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/Group.hpp"
#include "engine/Completion.hpp"

namespace taper {

// Of responses and their prompts.
std::int64_t tokens_of(std::span<const Completion> responses);

struct GatheredTokens {
  std::int64_t all = 0;   // on all ranks together
  std::int64_t room = 0;  // that are wanted, at most
};

// The responses of all ranks with their prompts, nothing else of them, in the order of their ids.
// Of more tokens than are wanted, each rank sends its last ones, in proportion to what it has.
// Collective over the group.
std::vector<Completion> gather_responses(const Group& group, std::span<const Completion> mine,
                                         const GatheredTokens& tokens);

}  // namespace taper
