// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/TrainPass.hpp"
#include "shard/Shard.hpp"

namespace taper {

// How fast replicas compute, in 1/kSpeedOne of one another; empty: all alike.
using ReplicaSpeeds = std::vector<int>;
inline constexpr int kSpeedOne = 1024;

// The replica that reads each sample: longest first to the one that would be done with it first. A
// pure function of lengths, order and speeds, so it does not matter who generated what.
std::vector<int> assign_replicas(const std::vector<int>& lengths, int replicas,
                                 const ReplicaSpeeds& speeds = {});
// The samples of one of them, ascending.
std::vector<int> assign_samples(const std::vector<int>& lengths, int dp_size, int dp_rank);

// The mini-batch, of at most `parts`, that has the samples of prompt number `prompt` of so many.
int mini_batch_of(std::int64_t prompt, std::int64_t prompts, int parts);
// Cuts samples, in order, into at most `parts` mini-batches of nearly equally many prompts; `ends`
// are those of the samples of a prompt.
std::vector<Range> cut_mini_batches(const std::vector<int>& ends, int parts);

// Cuts sequences of the given lengths, in order, into micro-batches of at most max_rows tokens and
// max_sequences sequences. Throws Error for a sequence that does not fit alone.
std::vector<std::vector<int>> cut_micro_batches(const std::vector<int>& lengths, int max_rows,
                                                int max_sequences);

// What sequences take in a micro-batch: tokens of each, and the rows that it adds behind the one
// before it, with which it may share a prompt.
struct SequenceSizes {
  std::vector<int> tokens, rows;
  std::vector<std::int64_t> prompts;  // ids; empty: nobody asks

  SequenceSizes() = default;
  // Sequences that share nothing.
  SequenceSizes(std::vector<int> lengths) : tokens(std::move(lengths)), rows(tokens) {}
  // With `shared` tokens in common with the sequence before it.
  void add(int length, int shared, std::int64_t prompt = 0) {
    tokens.push_back(length);
    rows.push_back(length - shared);
    prompts.push_back(prompt);
  }
  // A sample, whose last token is not read; with `shares`, samples of a prompt have all of it but
  // its last token in common.
  void add_sample(int length, int prompt_tokens, std::int64_t prompt, bool shares) {
    const bool follows = shares && !prompts.empty() && prompts.back() == prompt;
    add(length - 1, follows ? prompt_tokens - 1 : 0, prompt);
  }
  int count() const { return static_cast<int>(tokens.size()); }
};

// Bundles, micro-batches that do not depend on the number of ranks: sequences in order, cut where
// there would be more than pass.bundle_tokens rows, pass.max_rows tokens or pass.max_sequences
// sequences (a longer sequence is a bundle of its own), and before into a power of two of nearly
// equal parts, at least four, which can be shared out evenly, or, with pass.bundles_of_prompts,
// between prompts. Throws Error for a sequence that does not fit into a micro-batch.
std::vector<Range> cut_bundles(const SequenceSizes& sizes, const TrainPassOptions& pass);

inline constexpr int kNoReplica = -1;

// The replica that trains each sequence; if there are bundles, all of a bundle have the same.
// `early`: by sequences, the replica that has trained their bundle already, which keeps them, or
// kNoReplica; empty: none has.
std::vector<int> deal(const SequenceSizes& sizes, int replicas, const TrainPassOptions& pass,
                      const ReplicaSpeeds& speeds = {}, std::vector<int> early = {});

// The micro-batches of data-parallel rank `dp_rank`, as indices of sequences.
std::vector<std::vector<int>> micro_batches_of(const SequenceSizes& sizes, int dp_size, int dp_rank,
                                               const TrainPassOptions& pass);

// Whole sequences of a micro-batch as packed rows, of which the last token counts.
struct PackedEnds {
  PackedSequences sequences;
  std::vector<int> rows;  // of the last token, by sequence

  // A sequence in one or two parts.
  void add(std::span<const std::int32_t> tokens, std::span<const std::int32_t> rest = {});
};

// Sequences of a micro-batch as packed rows; the last token of a sequence is no input. rows[i]
// predicts targets[i], the response tokens sequence by sequence.
struct PackedSamples {
  // Whether samples of one prompt that follow one another share it: all but its last token, whose
  // row predicts the first of each response.
  bool shares_prompts = false;
  PackedSequences sequences;
  std::vector<int> rows;
  std::vector<std::int32_t> targets;

  void add(std::span<const std::int32_t> prompt, std::span<const std::int32_t> response);
  // A sequence of which the tokens in `answers` are targets: ascending ranges, not the first token.
  void add(std::span<const std::int32_t> tokens, std::span<const Range> answers);

 private:
  bool shares(std::span<const std::int32_t> prompt) const;

  Range prompt_ = {0, 0};  // rows of the prompt of the last sample that shares none
};

// Some samples of a list, packed in their order.
struct MicroBatch {
  std::vector<int> samples;  // indices into the list
  PackedSamples packed;
};

}  // namespace taper
