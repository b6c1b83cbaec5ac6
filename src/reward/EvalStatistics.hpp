// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/MetricValues.hpp"
#include "instance/ModelFiles.hpp"
#include "reward/RewardRule.hpp"
#include "rl/SampleSet.hpp"

namespace taper {

// The judged responses to one prompt.
struct JudgedPrompt {
  std::vector<double> scores;                       // per sample: 1 right, 0 wrong
  std::vector<std::optional<std::string>> answers;  // per sample, in comparable form
};

// Adds a sample: its score, and the answer that its text gives by the rule, in the form in which an
// earlier sample gave it, so that votes can be counted.
void add_sample(RewardRule rule, double score, const std::string& text, JudgedPrompt& judged);

// Figures over the prompts of a group, in [0, 1].
struct EvalScores {
  int prompts = 0;
  double avg = 0;              // avg@k: mean score
  std::map<int, double> pass;  // pass@j by pass_sizes(k): at least one of j samples is right
  double maj = 0;              // maj@k: the most frequent answer is right
};

// The unbiased estimate of pass@k from `right` of `samples` right ones: 1 - C(samples - right, k) /
// C(samples, k) (Chen et al., "Evaluating large language models trained on code", 2021). 1 <= k <=
// samples.
double pass_at(int samples, int right, int k);

// What the responses to one prompt are worth.
struct PromptScores {
  int samples = 0, right = 0;
  double mean = 0.0;      // score
  double majority = 0.0;  // score of the most frequent answer
};

// At least one sample.
PromptScores scores_of(const JudgedPrompt& prompt);

// What the responses to each of `prompts` prompts, whose numbers are 0, 1, ..., are worth by their
// scores, the same on all ranks; without unscored responses, of which a prompt may have nothing
// else: 0 samples. Answers are taken out of responses by `rule`. Brings the responses to a prompt
// together on one rank. Collective over the ranks of the samples.
std::vector<PromptScores> score_prompts(SampleSet& samples, std::size_t prompts, RewardRule rule,
                                        const ModelFiles& files);

// The score of the most frequent answer, of the earliest sample among equals; 0 if no sample
// gives an answer.
double majority_score(const JudgedPrompt& prompt);

// The j of pass@j for so many samples: 1, 2, 4, ... and all of them.
std::vector<int> pass_sizes(int samples);

// Of the prompts that have a sample. If some have fewer than others, pass@j is of the prompts
// that have j or more.
EvalScores summarize(const std::vector<PromptScores>& prompts);

// The scores of a group with so many samples per prompt by name: "avg@k", "pass@j" for each that
// there is, "maj@k".
MetricValues named_scores(const EvalScores& scores, int samples);

}  // namespace taper
