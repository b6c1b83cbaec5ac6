// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/PlanSearch.hpp"

namespace taper {

// A generation that begins, on the ranks of a setting.
struct FirstSequences {
  int count = 1;
  int samples = 1;  // per prompt
  std::int64_t mean_prompt = 0;
  int max_new_tokens = 0;
};

// Which of the uniform layouts of the setting, as an index, these sequences are expected to end
// first in, on at most so many futures; if the setting looks ahead, with the switches that are
// likely to follow.
std::size_t choose_first_layout(const PlanSetting& setting, const FirstSequences& sequences,
                                int most_futures);

}  // namespace taper
