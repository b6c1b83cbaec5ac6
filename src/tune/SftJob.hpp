// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tune/SftSource.hpp"
#include "tune/TuningJob.hpp"

namespace taper {

// Supervised fine-tuning on examples of files or of in-tree tasks: token-mean cross entropy of what
// is to be said.
class SftJob final : public TuningJob {
 public:
  // Reads the model's configuration and tokenizer, and all examples. Throws Error if something
  // is missing or an example cannot be learned. Collective over the world. The options must outlive
  // the job.
  SftJob(const SftOptions& options, const Ranks& ranks, const TuningContext& context = {});

 private:
  const char* command() const override { return "sft"; }
  std::uint64_t fingerprint() const override { return source_.fingerprint(); }
  std::int64_t steps_left(std::uint64_t next, std::int64_t done) const override {
    return source_.steps_left(next, done);
  }
  StepFigures accumulate(std::uint64_t& next) override;
  bool has_validation() const override { return !source_.validation().empty(); }
  // Minus the mean log-prob of the held-out targets.
  MetricValues validate() override;
  double total(std::vector<double>& of_examples);
  std::string train_text(const ValueOf& value) const override;
  std::string held_out_text(const ValueOf& value) const override;
  std::string examples_text() const override;
  std::string beginning() const override {
    return options_.from_scratch ? "from random weights" : TuningJob::beginning();
  }
  bool loads_weights() const override { return !options_.from_scratch; }

  const SftOptions& options_;
  SftSource source_;
};

}  // namespace taper
