// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reward/AdaptiveTimeout.hpp"
#include "reward/RewardRule.hpp"
#include "workers/WorkerPool.hpp"

namespace taper {

enum class RewardKind {
  kNone,  // not said
  kTask,
  kExact,
  kGsm8kStrict,
  kGsm8kFlexible,
  kBoxed,
  kFormat,
  kLength,
  kOverlong,
  kRepetition,
  kCommand,
  kModel
};

// The kinds under the names that run files give them.
std::vector<std::pair<std::string, RewardKind>> named_reward_kinds();

// The rule that judges by the known answer; nothing for the other kinds.
std::optional<RewardRule> rule_of(RewardKind kind);
RewardKind kind_of(RewardRule rule);
// Whether a kind only shapes the score: its penalties are for the form of a response, whatever it
// says (length, overlong, repetition).
bool is_shaping(RewardKind kind);

// 1 if a response has the markers, each once and in this order, else 0.
struct FormatOptions {
  std::vector<std::string> markers;
  bool enclosing = true;  // nothing but white space before the first and after the last one
};

// A penalty for each token above a target.
struct LengthOptions {
  int target = 1024;  // tokens
  double per_token = 0.001;
  double lowest = -1.0;
};

// DAPO's soft punishment (Yu et al. 2025): a slope over the last `buffer` tokens before `limit`.
struct OverlongOptions {
  int limit = 0;  // tokens; 0: the longest response of the run
  int buffer = 128;
  double factor = 1.0;
};

// The share of repeated n-grams of tokens.
struct RepetitionOptions {
  int n = 4;
  double penalty = 1.0;  // of a response of nothing but repetition
};

// A trained reward model.
struct ModelRewardOptions {
  std::string directory;  // Hugging Face, of sequence classification with one label
  int tp = 0;             // ranks per replica; 0: as in training
  std::string ranks;      // that it is on (shard/ModelLayout.hpp); empty: by Placement/Strategy
};

// One of the rewards that are summed up to a response's score.
struct RewardOptions {
  std::string name;
  RewardKind kind = RewardKind::kNone;
  double weight = 1.0;
  FormatOptions format;
  LengthOptions length;
  OverlongOptions overlong;
  RepetitionOptions repetition;
  CommandOptions command;
  AdaptiveTimeoutOptions adaptive_timeout;  // of a command
  ModelRewardOptions model;

  // Each begins with the path of the parameter in a run file.
  std::vector<std::string> problems() const;
};

// What Sample::rewards holds: the rewards, each followed by the figures that its answers have.
std::vector<std::string> reward_names(const std::vector<RewardOptions>& rewards);
// The position of a reward in it.
std::size_t reward_index(const std::vector<RewardOptions>& rewards, const std::string& name);

}  // namespace taper
