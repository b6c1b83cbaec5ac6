// SPDX-License-Identifier: Apache-2.0
#include "reward/EvalStatistics.hpp"

#include <algorithm>
#include <numeric>

#include "base/Error.hpp"

namespace taper {

void add_sample(RewardRule rule, double score, const std::string& text, JudgedPrompt& judged) {
  auto answer = extract_answer(rule, text);
  for (const auto& before : judged.answers)
    if (answer && before && same_answer(rule, *before, *answer)) {
      answer = before;
      break;
    }
  judged.scores.push_back(score);
  judged.answers.push_back(answer);
}

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

std::vector<int> pass_sizes(int samples) {
  std::vector<int> sizes;
  for (int j = 1; j < samples; j *= 2) sizes.push_back(j);
  sizes.push_back(samples);
  return sizes;
}

EvalScores summarize(const std::vector<JudgedPrompt>& prompts) {
  EvalScores total;
  total.prompts = static_cast<int>(prompts.size());
  std::map<int, int> prompts_of;  // by j
  for (const JudgedPrompt& p : prompts) {
    const int samples = static_cast<int>(p.scores.size());
    const int right = static_cast<int>(
        std::count_if(p.scores.begin(), p.scores.end(), [](double s) { return s > 0.5; }));
    total.avg += std::accumulate(p.scores.begin(), p.scores.end(), 0.0) / samples;
    for (const int j : pass_sizes(samples)) {
      total.pass[j] += pass_at(samples, right, j);
      ++prompts_of[j];
    }
    total.maj += majority_score(p);
  }
  // Divided at the end: a sum of shares would come out above 1, and differ where figures are equal.
  total.avg /= total.prompts;
  total.maj /= total.prompts;
  for (auto& [j, pass] : total.pass) pass /= prompts_of[j];
  return total;
}

}  // namespace taper
