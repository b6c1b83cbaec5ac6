// SPDX-License-Identifier: Apache-2.0
#include "reward/EvalStatistics.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>

#include "base/Error.hpp"
#include "results/HeldOutNames.hpp"

namespace taper {

void add_sample(RewardRule rule, double score, const std::string& text, JudgedPrompt& judged) {
  auto answer = extract_answer(rule, text);
  std::set<std::string_view> compared;  // each kind of answer once: comparing takes long
  for (const auto& before : judged.answers) {
    if (!answer || !before || !compared.insert(*before).second) continue;
    if (*before == *answer || same_answer(rule, *before, *answer)) {
      answer = before;
      break;
    }
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

PromptScores scores_of(const JudgedPrompt& prompt) {
  TAPER_EXPECT(!prompt.scores.empty());
  const int samples = static_cast<int>(prompt.scores.size());
  const auto right = std::count_if(prompt.scores.begin(), prompt.scores.end(),
                                   [](double score) { return score > 0.5; });
  const double sum = std::accumulate(prompt.scores.begin(), prompt.scores.end(), 0.0);
  return {samples, static_cast<int>(right), sum / samples, majority_score(prompt)};
}

std::vector<PromptScores> score_prompts(SampleSet& samples, std::size_t prompts, RewardRule rule,
                                        const ModelFiles& files) {
  std::vector<int> rank_of;
  for (const SampleSummary& s : samples.all())
    rank_of.push_back(static_cast<int>(s.id.prompt % samples.ranks()));
  samples.move_to({1, samples.ranks()}, rank_of);
  std::map<std::int64_t, JudgedPrompt> judged;
  for (const Sample& s : samples.here())
    if (!s.unscored)
      add_sample(rule, s.score, files.tokenizer().decode(s.response, SkipSpecial::kYes),
                 judged[s.id.prompt]);
  // The first response to a prompt brings the figures of all.
  const auto by_sample = samples.gather([&](std::size_t k) {
    PromptScores scores;
    const auto found = judged.find(samples.here()[k].id.prompt);
    if (found == judged.end()) return scores;
    scores = scores_of(found->second);
    judged.erase(found);
    return scores;
  });
  std::vector<PromptScores> all(prompts);
  for (std::size_t row = 0; row < by_sample.size(); ++row)
    if (by_sample[row].samples > 0)
      all.at(static_cast<std::size_t>(samples.all()[row].id.prompt)) = by_sample[row];
  return all;
}

EvalScores summarize(const std::vector<PromptScores>& prompts) {
  EvalScores total;
  std::map<int, int> prompts_of;  // by j
  for (const PromptScores& p : prompts) {
    if (p.samples == 0) continue;
    ++total.prompts;
    total.avg += p.mean;
    for (const int j : pass_sizes(p.samples)) {
      total.pass[j] += pass_at(p.samples, p.right, j);
      ++prompts_of[j];
    }
    total.maj += p.majority;
  }
  // Divided at the end: a sum of shares would come out above 1, and differ if figures are equal.
  total.avg /= total.prompts;
  total.maj /= total.prompts;
  for (auto& [j, pass] : total.pass) pass /= prompts_of[j];
  return total;
}

MetricValues named_scores(const EvalScores& scores, int samples) {
  MetricValues values{{avg_figure(samples), scores.avg}};
  for (const int j : pass_sizes(samples))
    if (scores.pass.contains(j)) values.emplace_back(pass_figure(j), scores.pass.at(j));
  values.emplace_back(maj_figure(samples), scores.maj);
  return values;
}

}  // namespace taper
