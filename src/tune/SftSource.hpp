// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "data/Order.hpp"
#include "data/SftExamples.hpp"
#include "data/Tasks.hpp"
#include "tune/TuningOptions.hpp"

namespace taper {

// The examples of a fine-tuning run as a pure function of (seed, position): those of files, in a
// new order in each pass over them (unless told otherwise), or in-tree ones without end.
class SftSource {
 public:
  // max_rows: tokens of a micro-batch. Reads the files. Throws Error naming file and line.
  SftSource(const SftOptions& options, const ModelFiles& files, int max_rows);

  // The examples of one optimizer step, from position `next` on: as many as it takes to reach the
  // token budget, fewer at the end of the run. Advances `next` to the position of the next step.
  // Throws Error if in-tree examples do not fit a micro-batch.
  std::vector<TokenExample> next_batch(std::uint64_t& next) const;
  // Steps of the run from position `next` on, which is that of step `done`.
  std::int64_t steps_left(std::uint64_t next, std::int64_t done) const;
  // Passes over the files that lie before a position; 0 of in-tree examples.
  double epochs(std::uint64_t next) const;

  // Held-out examples, in the order of their files.
  const std::vector<TokenExample>& validation() const { return validation_; }
  // Those of the files; 0 of in-tree examples.
  std::int64_t examples() const { return std::ssize(examples_); }
  // Changes with what any position gives (but for seed and budget).
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  std::uint64_t make_fingerprint() const;
  std::vector<TokenExample> next_task_batch(std::uint64_t& next) const;

  SftOptions options_;
  const ModelFiles* files_;
  int limit_;  // tokens of an example
  int max_rows_;
  TaskMix mix_;
  SftEncoder encoder_;
  std::vector<TokenExample> examples_, validation_;
  ExampleOrder order_;
  std::uint64_t fingerprint_;
};

}  // namespace taper
