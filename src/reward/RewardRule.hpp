// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace taper {

// How a response is held against a known answer.
enum class RewardRule { kTask, kExact, kGsm8kStrict, kGsm8kFlexible, kBoxed };

// The rules under the names that run files and commands give them.
std::vector<std::pair<std::string, RewardRule>> named_reward_rules();

// 1 for the right answer, else 0.
double score_response(RewardRule rule, const std::string& truth, const std::string& response);

// The answer that a response gives by the rule; nothing if there is none.
std::optional<std::string> extract_answer(RewardRule rule, const std::string& response);

// Whether the rule takes two answers for one.
bool same_answer(RewardRule rule, const std::string& a, const std::string& b);

}  // namespace taper
