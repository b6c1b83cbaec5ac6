// SPDX-License-Identifier: Apache-2.0
#include "driver/EvalStatistics.hpp"

#include <algorithm>
#include <numeric>

#include "base/Error.hpp"

namespace taper {

// As a product, so that no binomial overflows: prod over i in (samples - right, samples] of 1 - k /
// i.
double pass_at(int samples, int right, int k) {
  TAPER_EXPECT(1 <= k && k <= samples && 0 <= right && right <= samples);
  if (samples - right < k) return 1.0;
  if (k == 1) return static_cast<double>(right) / samples;  // the bits of a mean score
  double none = 1.0;
  for (int i = samples - right + 1; i <= samples; ++i) none *= 1.0 - static_cast<double>(k) / i;
  return 1.0 - none;
}

double majority_score(const JudgedPrompt& prompt) {
  std::map<std::string, int> votes;
  for (const auto& answer : prompt.answers)
    if (answer) ++votes[*answer];
  int most = 0;
  double score = 0.0;
  for (std::size_t i = 0; i < prompt.answers.size(); ++i) {
    if (!prompt.answers[i] || votes[*prompt.answers[i]] <= most) continue;
    most = votes[*prompt.answers[i]];
    score = prompt.scores[i];
  }
  return score;
}

EvalScores summarize(const std::vector<JudgedPrompt>& prompts) {
  EvalScores total;
  total.prompts = static_cast<int>(prompts.size());
  for (const JudgedPrompt& p : prompts) {
    const int samples = static_cast<int>(p.scores.size());
    const int right = static_cast<int>(
        std::count_if(p.scores.begin(), p.scores.end(), [](double s) { return s > 0.5; }));
    total.avg += std::accumulate(p.scores.begin(), p.scores.end(), 0.0) / samples;
    for (int j = 1; j < samples; j *= 2) total.pass[j] += pass_at(samples, right, j);
    total.pass[samples] += pass_at(samples, right, samples);
    total.maj += majority_score(p);
  }
  // Divided at the end: a sum of shares would come out above 1, and differ where figures are equal.
  total.avg /= total.prompts;
  total.maj /= total.prompts;
  for (auto& [j, pass] : total.pass) pass /= total.prompts;
  return total;
}

}  // namespace taper
