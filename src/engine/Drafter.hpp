// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/Sampler.hpp"
#include "engine/SamplingOptions.hpp"
#include "engine/Sequence.hpp"

namespace taper {

// A sequence that may get a draft, of `most` tokens at most.
struct DraftAsk {
  const Sequence* sequence = nullptr;
  int most = 0;
};

// Guesses how sequences go on. The engine draws the tokens that it would draw anyway and keeps a
// guess only if it is that token, so guesses change how many tokens a step yields, and nothing else
// (speculative decoding; that the drafter cannot be told from the output is shown by Daliri, Musco
// and Suresh, "Coupling without communication and drafter-invariant speculative decoding", 2024).
class Drafter {
 public:
  virtual ~Drafter() = default;

  // A draft for each ask, in their order: ids of the tokenizer, as many as are wanted and at most
  // `rows` in all. Asked in steps that do nothing but decode. All ranks of a group must return the
  // same.
  virtual std::vector<std::vector<std::int32_t>> propose(std::span<const DraftAsk> asks,
                                                         int rows) = 0;
  // `tokens` are the last ones of the sequence and what a step has given it; the step had the first
  // `drafted` tokens of its draft, for which there may have been less room than there were guesses.
  // Told of every sequence that decodes, also in steps without drafts.
  virtual void observe(const Sequence& sequence, int drafted,
                       std::span<const std::int32_t> tokens) = 0;
};

// A sequence and what its draft has so far.
struct DraftContext {
  const Sequence* sequence = nullptr;
  std::span<const std::int32_t> draft;
};

// A language model that says what it would draw next, for a drafter: with the very random numbers
// that the policy will draw with, so that equal distributions give equal tokens.
class GuessModel {
 public:
  virtual ~GuessModel() = default;

  // Whether each rank draws by itself, for any contexts.
  virtual bool is_local() const = 0;
  // Whether what it computes for a context without a draft is left out of the step that follows.
  virtual bool is_part_of_step() const = 0;
  // Lets go of the sequences that are not among the asks.
  virtual void keep(std::span<const DraftAsk> asks) = 0;
  // The token that the model would draw after each context; id -1 if there is no room to compute
  // it. Unless is_local(), collective over a group, with the same contexts on all its ranks.
  virtual std::vector<DrawnToken> draw(std::span<const DraftContext> contexts,
                                       const SamplingOptions& sampling) = 0;
  // Tokens that the last draw() read: one or two of each sequence that is not new.
  virtual int rows_read() const = 0;
};

}  // namespace taper
