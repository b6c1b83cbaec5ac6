// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/PromptSource.hpp"
#include "reward/AdaptiveTimeout.hpp"
#include "reward/Protocol.hpp"
#include "reward/RewardFigures.hpp"
#include "reward/RewardOptions.hpp"
#include "rl/Sample.hpp"
#include "session/Ranks.hpp"
#include "workers/WorkerPool.hpp"

namespace taper {

// Those of the rewards that are commands: this rank's workers, and their answers about the
// responses that it has made.
class RewardCommands {
 public:
  // Refers to all of these; `spawner` may be null if no reward is a command. The workers' standard
  // errors go to files in `log_directory`.
  RewardCommands(const std::vector<RewardOptions>& rewards, const Ranks& ranks, Spawner* spawner,
                 std::string log_directory);
  ~RewardCommands();

  // Throws Error with kBadInput if the program of a command is not there, without starting it.
  void require_programs() const;
  // Makes the log directory, and starts all workers now if this rank is sure to need them, else as
  // they are needed. Throws Error with kBadInput if they cannot be started.
  enum class Start { kNow, kOnDemand };
  void start(Start start);
  // Whether none has been started.
  bool empty() const { return commands_.empty(); }
  const std::string& log_directory() const { return log_directory_; }

  // Forgets all answers. The responses to come are to these prompts, numbered from first_prompt on.
  void begin(std::span<const Prompt> prompts, std::int64_t first_prompt);
  void submit(const JudgedResponse& response);
  // Takes what they have answered meanwhile. Not collective.
  void take_answers();
  // Whether all have answered, or have failed in a way with which the run goes on, as far as
  // answers have been taken. Not collective.
  bool has_answers(const ResponseId& id) const;
  // No worker is asked about it any more, and no answer is kept.
  void cancel(const ResponseId& id);
  // Waits for the answers to all that was submitted on any rank. False if `stop`, which all ranks
  // ask together, says so while workers are at it, or within half a second after an answer is found
  // missing that must not be. Else that one is an Error, the same on all ranks, and no other answer
  // is waited for. Collective over the world.
  bool collect(const std::function<bool()>& stop);
  // Appends to the sample's rewards what this command said of it: its score, and its other figures;
  // NaN if it gave no score, in which case the sample may become unscored. Returns the score, 0
  // without one.
  double add_answer(const RewardOptions& reward, Sample& sample) const;

  // Adds the attempts of the workers of all ranks to the figures, and learns adaptive timeouts from
  // the times of good answers. Throws Error if a command has scored none of the samples. Collective
  // over the world.
  void conclude(const std::vector<SampleSummary>& samples, RewardFigures& figures);

  // What adaptive timeouts have learned; empty if no command has one. The same on all ranks.
  const Anchors::Table& anchors() const { return anchors_.table(); }
  void set_anchors(const Anchors::Table& anchors);

 private:
  struct Command;

  std::uint64_t fingerprint_of(std::int64_t prompt) const;
  double timeout_of(const RewardOptions& reward, std::int64_t prompt) const;
  bool wait(double seconds);
  std::string loss() const;
  void count_attempts(Command& command, const std::vector<SampleSummary>& samples,
                      RewardFigures& figures);
  std::int64_t anchor_hits(const std::string& reward,
                           const std::vector<SampleSummary>& samples) const;
  void require_scores(const std::string& reward, const std::vector<SampleSummary>& samples) const;
  void learn_anchors();

  const std::vector<RewardOptions>& rewards_;
  const Ranks& ranks_;
  Spawner* spawner_;
  std::string log_directory_;
  bool adapts_ = false;                                       // the timeout of a command
  std::map<std::string, std::unique_ptr<Command>> commands_;  // by the name of the reward
  std::vector<std::uint64_t> fingerprints_;                   // of prompts, from first_prompt_ on
  std::int64_t first_prompt_ = 0;
  Anchors anchors_;
};

}  // namespace taper
