// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/StateFile.hpp"
#include "data/PromptSource.hpp"
#include "reward/Judge.hpp"
#include "rl/Batch.hpp"
#include "rollout/Generator.hpp"
#include "rollout/PinnedLengths.hpp"
#include "rollout/RoundReport.hpp"
#include "rounds/PromptRounds.hpp"
#include "rounds/RoundChoice.hpp"
#include "run/PhaseTimer.hpp"
#include "session/StopRequest.hpp"
#include "train/EarlyWork.hpp"
#include "train/Journal.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The rollouts of a training run: prompts are drawn, responses generated and judged, in as many
// rounds as an iteration takes.
class Rollouts {
 public:
  // Reads the prompts. Refers to files, generator, which is null on ranks that do not generate, and
  // judge. Throws Error naming the key, or file and line, of what is wrong. Collective over the
  // world.
  Rollouts(const RunOptions& options, const ModelFiles& files, const Ranks& ranks,
           Generator* generator, Judge& judge);

  // What else is done with the responses of an iteration while models among the rewards judge them.
  struct Beside {
    std::span<const ModelCall> calls;
    CallRecord* record = nullptr;  // null: all models are on all ranks
    ModelLayout generation = {};
    EarlyWork* early = nullptr;  // null: nobody does anything while others generate
  };
  // The responses of an iteration, with rewards; nothing if a stop was agreed on meanwhile. Its
  // prompts follow those of the last finished iteration. The generator's planner has learned from
  // the responses. Phases gen and reward. Collective over the world.
  std::optional<Batch> collect(std::int64_t iteration, StopAgreement& stop, PhaseTimer& timer,
                               const Beside& beside);

  // The prompts of the last collect() count: its iteration will be finished.
  void advance();
  // Where the next iteration goes on in the stream of prompts, in checkpoints.
  void add_state(StateInfo& state) const;
  void set_state(const StateInfo& state);
  // Throws Error if set_state() would. Not collective.
  void require_state(const StateInfo& state) const;
  // Prompts that wait for a long round.
  std::int64_t waiting() const { return std::ssize(rounds_.waiting()); }

  // The iteration of the last collect() is not finished, but will be by another job: keeps what it
  // has generated. Collective over the world.
  void put_off(std::int64_t iteration) const { journal_.write(iteration, made_); }
  // It is finished, and never comes again.
  void forget(std::int64_t iteration) const { journal_.remove(iteration); }

  // Of the last collect(): each generation, where it was; unless rounds are plain, what became of
  // the responses of each, and the numbers of all prompts in the stream, by ResponseId::prompt;
  // sequences preempted.
  const std::vector<GenerationReport>& generations() const { return generations_; }
  const std::vector<RoundReport>& reports() const { return reports_; }
  std::vector<std::int64_t> stream() const {
    return options_.rounds.is_plain() ? std::vector<std::int64_t>{} : stream_;
  }
  std::int64_t preemptions() const {
    return generator_ == nullptr ? 0 : generator_->preemptions() - preempted_before_;
  }

  SamplingOptions sampling(std::int64_t iteration) const;
  const PromptSource& prompts() const { return prompts_; }

 private:
  std::optional<SampleSet> round(std::int64_t iteration, StopAgreement& stop, PhaseTimer& timer,
                                 const Beside& beside);
  std::vector<Sample> generate(const Round& round, const std::vector<Request>& requests,
                               const SamplingOptions& sampling, const StopAgreement& stop,
                               EarlyWork* early);
  // Ids count from `first`.
  std::vector<Request> requests(const Round& round, const std::vector<Prompt>& prompts,
                                std::int64_t first) const;
  void choose_factor();

  RolloutOptions options_;
  const Ranks& ranks_;
  DynamicSamplingOptions dynamic_;
  std::uint64_t seed_;
  Generator* generator_;
  Judge& judge_;
  PromptSource prompts_;
  PinnedLengths lengths_;
  StopOptions stops_;
  Journal journal_;
  // After the last finished iteration, and after the last round.
  PromptRounds rounds_, ahead_;
  std::optional<RoundChoice> choice_;  // if short rounds have a price
  std::string choice_state_;           // after the last finished iteration
  std::vector<RolloutRecord> made_;    // here, by the last collect(), if there is a journal
  std::vector<GenerationReport> generations_;
  std::vector<RoundReport> reports_;  // with tail batching
  std::vector<std::int64_t> stream_;  // numbers of the iteration's prompts, by ResponseId::prompt
  std::int64_t preempted_before_ = 0;
};

}  // namespace taper
