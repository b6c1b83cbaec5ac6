// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/Drafter.hpp"
#include "engine/Sampler.hpp"
#include "engine/SamplingOptions.hpp"

namespace taper {

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
  // Of the step that follows, these are all sequences: it lets go of others.
  virtual void keep(std::span<const DraftAsk> asks) = 0;
  // The token that the model would draw after each context; id -1 if there is no room to compute
  // it. Unless is_local(), collective over a group, with the same contexts on all its ranks.
  virtual std::vector<DrawnToken> draw(std::span<const DraftContext> contexts,
                                       const SamplingOptions& sampling) = 0;
  // Tokens that the last draw() read: one or two of each sequence that is not new.
  virtual int rows_read() const = 0;
};

}  // namespace taper
