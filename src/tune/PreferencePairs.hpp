// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/Order.hpp"
#include "instance/ModelFiles.hpp"
#include "tune/TuningOptions.hpp"

namespace taper {

// A preference pair as a model sees it: twice the prompt, with the response that was chosen and
// with the one that was rejected. Each ends with the response's last token, that of the end of
// sequence or turn included: the reward is the value there.
struct TokenPair {
  std::vector<std::int32_t> chosen, rejected;
  double margin = 0.0;

  int length() const { return static_cast<int>(chosen.size() + rejected.size()); }
};

// What a side and a pair of them may have of tokens.
struct PairLimits {
  int side = 0;
  int pair = 0;  // a pair is computed in one micro-batch
};

// The pairs of files, in their order; what was left out is logged by file. `option` names the files
// in errors (a key of the run file). Throws Error naming file and line of a pair that cannot be
// learned, and naming the file if nothing is left of it.
std::vector<TokenPair> read_pairs(const std::string& option, const std::vector<std::string>& files,
                                  const PreferenceDataOptions& data, const ModelFiles& model,
                                  const PairLimits& limits);

// The pairs of a run as a pure function of (seed, position).
class PreferenceSource {
 public:
  // max_rows: tokens of a micro-batch. Reads the files. Throws Error naming file and line.
  PreferenceSource(const RewardModelOptions& options, const ModelFiles& files, int max_rows);

  // The pairs of one optimizer step, from position `next` on, fewer at the end of the run. Advances
  // `next` to the position of the next step.
  std::vector<TokenPair> next_batch(std::uint64_t& next) const;
  // Steps of the run from position `next` on, which is that of step `done`.
  std::int64_t steps_left(std::uint64_t next, std::int64_t done) const;
  // Passes over the files that lie before a position.
  double epochs(std::uint64_t next) const { return order_.passes(next); }

  std::int64_t pairs() const { return std::ssize(pairs_); }
  // Held-out pairs, in the order of their files.
  const std::vector<TokenPair>& validation() const { return validation_; }
  // Changes with what any position gives (but for seed and batch).
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  std::uint64_t make_fingerprint(bool shuffle) const;

  int batch_pairs_;
  std::int64_t steps_;
  std::vector<TokenPair> pairs_, validation_;
  ExampleOrder order_;
  std::uint64_t fingerprint_;
};

}  // namespace taper
