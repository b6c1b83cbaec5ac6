// SPDX-License-Identifier: Apache-2.0
#include "rollout/Generation.hpp"

#include <utility>

namespace taper {

Sample as_sample(Completion&& c) {
  Sample s;
  s.ordinal = c.ordinal;
  s.sample = c.sample;
  s.prompt = std::move(c.prompt);
  s.response = std::move(c.response);
  s.log_probs = std::move(c.log_probs);
  s.kept_mass = std::move(c.kept_mass);
  s.finish = c.finish;
  s.spans = std::move(c.spans);
  return s;
}

}  // namespace taper
