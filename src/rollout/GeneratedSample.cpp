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

RolloutRecord record_of(const Sample& s, bool is_cut) {
  RolloutRecord r;
  r.id = s.id;
  r.prompt_length = static_cast<std::int32_t>(s.prompt.size());
  r.tokens = s.prompt;
  r.log_probs = s.log_probs;
  r.tokens.insert(r.tokens.end(), s.response.begin(), s.response.end());
  if (is_cut) r.kept_mass = s.kept_mass;
  r.values = s.values;
  r.rewards = s.rewards;
  r.advantage = s.mean_advantage();
  r.finish = s.finish;
  r.layout = s.spans;
  return r;
}

std::vector<Outcome> outcomes_of(const std::vector<SampleSummary>& samples) {
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < samples.size(); ++i)
    outcomes.push_back({static_cast<std::int64_t>(i), samples[i].prompt_tokens,
                        samples[i].response_tokens, samples[i].finish == FinishReason::kAbort});
  return outcomes;
}

}  // namespace taper
