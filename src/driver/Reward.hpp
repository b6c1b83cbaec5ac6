// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "driver/Options.hpp"

namespace taper {

// Scores one response by the rule of the data: 1 for the right answer, else 0.
double score_response(RewardRule rule, const std::string& truth, const std::string& response);

// The answer that a response gives by the rule, in the form in which answers are compared; nothing
// where there is none.
std::optional<std::string> extract_answer(RewardRule rule, const std::string& response);

}  // namespace taper
