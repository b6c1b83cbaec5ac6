// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "driver/Options.hpp"

namespace taper {

// Scores one response by the rule of the data: 1 for the right answer, else 0.
double score_response(RewardRule rule, const std::string& truth, const std::string& response);

}  // namespace taper
