// SPDX-License-Identifier: Apache-2.0
#include "engine/SamplingOptions.hpp"

namespace taper {

std::vector<std::string> SamplingOptions::problems() const {
  std::vector<std::string> list;
  if (!(temperature >= 0.0f)) list.push_back("temperature must not be negative (0 is greedy)");
  if (!(repetition_penalty > 0.0f)) list.push_back("repetition_penalty must be above 0 (1 is off)");
  if (top_k < 0) list.push_back("top_k must not be negative (0 is off)");
  if (!(top_p > 0.0f && top_p <= 1.0f)) list.push_back("top_p must be in (0, 1] (1 is off)");
  if (!(min_p >= 0.0f && min_p <= 1.0f)) list.push_back("min_p must be in [0, 1] (0 is off)");
  return list;
}

}  // namespace taper
