// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardRule.hpp"

#include "base/Text.hpp"
#include "reward/Answers.hpp"
#include "reward/MathAnswer.hpp"

namespace taper {

std::vector<std::pair<std::string, RewardRule>> named_reward_rules() {
  return {{"task", RewardRule::kTask},
          {"exact", RewardRule::kExact},
          {"gsm8k-strict", RewardRule::kGsm8kStrict},
          {"gsm8k-flexible", RewardRule::kGsm8kFlexible},
          {"boxed", RewardRule::kBoxed}};
}

double score_response(RewardRule rule, const std::string& truth, const std::string& response) {
  switch (rule) {
    case RewardRule::kTask:
      return score_task_answer(truth, response);
    case RewardRule::kExact:
      return score_exact_match(truth, response);
    case RewardRule::kGsm8kStrict:
      return score_gsm8k(truth, response, Gsm8kRule::kStrict);
    case RewardRule::kGsm8kFlexible:
      return score_gsm8k(truth, response, Gsm8kRule::kFlexible);
    case RewardRule::kBoxed:
      return score_boxed_math(truth, response);
  }
  return 0.0;
}

std::optional<std::string> extract_answer(RewardRule rule, const std::string& response) {
  switch (rule) {
    case RewardRule::kTask:
      return extract_task_answer(response);
    case RewardRule::kExact: {
      std::string answer = trim(response);
      if (answer.empty()) return std::nullopt;
      return answer;
    }
    case RewardRule::kGsm8kStrict:
      return extract_gsm8k_answer(response, Gsm8kRule::kStrict);
    case RewardRule::kGsm8kFlexible:
      return extract_gsm8k_answer(response, Gsm8kRule::kFlexible);
    case RewardRule::kBoxed:
      return extract_boxed_answer(response);
  }
  return std::nullopt;
}

bool same_answer(RewardRule rule, const std::string& a, const std::string& b) {
  return rule == RewardRule::kBoxed ? same_math_answer(a, b) : a == b;
}

}  // namespace taper
