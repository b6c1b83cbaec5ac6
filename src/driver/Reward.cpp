// SPDX-License-Identifier: Apache-2.0
#include "driver/Reward.hpp"

#include "text/Answers.hpp"

namespace taper {

double score_response(RewardRule rule, const std::string& truth, const std::string& response) {
  switch (rule) {
    case RewardRule::kTask: return score_task_answer(truth, response);
    case RewardRule::kExact: return score_exact_match(truth, response);
    case RewardRule::kGsm8kStrict: return score_gsm8k(truth, response, Gsm8kRule::kStrict);
    case RewardRule::kGsm8kFlexible: return score_gsm8k(truth, response, Gsm8kRule::kFlexible);
    case RewardRule::kBoxed: return score_boxed_math(truth, response);
  }
  return 0.0;
}

}  // namespace taper
