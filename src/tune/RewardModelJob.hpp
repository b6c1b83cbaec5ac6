// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tune/PreferencePairs.hpp"
#include "tune/TuningJob.hpp"

namespace taper {

// Trains a reward model on preference pairs: the loss of Bradley and Terry's model (rl/
// PreferenceLoss.hpp), the mean over the pairs of a step. The model begins with the weights of a
// reward model, or of a language model with a scalar head that is drawn.
class RewardModelJob final : public TuningJob {
 public:
  // Reads the model's configuration and tokenizer, and all pairs. Throws Error if something is
  // missing or a pair cannot be learned. Collective over the world. The options must outlive the
  // job.
  RewardModelJob(const RewardModelOptions& options, const Ranks& ranks,
                 const TuningContext& context = {});

 private:
  // What the model says of one pair.
  struct Judged {
    double loss = 0.0, chosen = 0.0, rejected = 0.0;
  };
  enum class Learn { kNo, kYes };

  const char* command() const override { return "reward-model"; }
  std::uint64_t fingerprint() const override { return source_.fingerprint(); }
  std::int64_t steps_left(std::uint64_t next, std::int64_t done) const override {
    return source_.steps_left(next, done);
  }
  StepFigures accumulate(std::uint64_t& next) override;
  bool has_validation() const override { return !source_.validation().empty(); }
  MetricValues validate() override;
  std::string train_text(const ValueOf& value) const override;
  std::string held_out_text(const ValueOf& value) const override;
  std::string examples_text() const override;

  // Rewards and losses of pairs, the same on all ranks whatever the layout; with kYes the gradient
  // of the mean loss is added. Collective over the world.
  std::vector<Judged> judge(const std::vector<TokenPair>& pairs, Learn learn);

  const RewardModelOptions& options_;
  PreferenceSource source_;
};

}  // namespace taper
