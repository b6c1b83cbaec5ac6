// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/MetricValues.hpp"
#include "rl/SampleSet.hpp"

namespace taper {

// What the timeout of a command did, if it adapts.
struct AdaptedAnswers {
  std::int64_t cut_short = 0;    // attempts
  std::int64_t anchor_hits = 0;  // prompts whose anchor limited their answers
};

// What the attempts of a command that judges were like.
struct RewardAttempts {
  std::int64_t errors = 0, timeouts = 0, restarts = 0;
  double seconds = 0.0;  // of the responses that got a score
  double longest = 0.0;  // of any response
  std::optional<AdaptedAnswers> adapted = {};
};

// What the rewards of all responses since begin() were like.
class RewardFigures {
 public:
  RewardFigures() = default;
  // names: of Sample::rewards, in their order.
  explicit RewardFigures(std::vector<std::string> names);

  void begin();
  void add(const std::vector<SampleSummary>& samples);
  void add(const std::string& command, const RewardAttempts& attempts);

  // By name, "<prefix>/<reward>/mean" and so on; of commands also failures and times. None of a
  // rule that judges alone: its reward is the score.
  MetricValues metrics(const std::string& prefix) const;

 private:
  // Over the responses that have the reward.
  struct Tally {
    std::int64_t there = 0, missing = 0;
    double sum = 0.0, highest = 0.0, lowest = 0.0;
    void add(float value);
  };

  std::vector<std::string> names_;
  std::vector<Tally> tallies_;                      // by names_
  std::map<std::string, RewardAttempts> attempts_;  // by the name of the command
};

}  // namespace taper
