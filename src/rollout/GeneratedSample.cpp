// SPDX-License-Identifier: Apache-2.0
#include "rollout/GeneratedSample.hpp"

#include <cstdint>
#include <utility>

namespace taper {

std::vector<Sample> as_samples(std::vector<Completion>&& completions) {
  std::vector<Sample> samples(completions.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Completion& c = completions[i];
    Sample& s = samples[i];
    s.id = c.id;
    s.prompt = std::move(c.prompt);
    s.response = std::move(c.response);
    s.log_probs = std::move(c.log_probs);
    s.kept_mass = std::move(c.kept_mass);
    s.finish = c.finish;
    s.spans = std::move(c.spans);
  }
  return samples;
}

std::vector<Outcome> outcomes_of(const std::vector<SampleSummary>& samples) {
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < samples.size(); ++i)
    outcomes.push_back({static_cast<std::int64_t>(i), samples[i].prompt_tokens,
                        samples[i].response_tokens, samples[i].finish == FinishReason::kAbort});
  return outcomes;
}

}  // namespace taper
