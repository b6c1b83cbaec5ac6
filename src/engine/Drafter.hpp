// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/Sequence.hpp"

namespace taper {

// A sequence that may get a draft, of `most` tokens at most.
struct DraftAsk {
  const Sequence* sequence = nullptr;
  int most = 0;
};

// Whether sequences wait for others to end.
enum class Queue { kEmpty, kWaiting };

// What a step can take, besides the next token of each sequence.
struct DraftRoom {
  int rows = 0;  // of guesses
  Queue queue = Queue::kEmpty;
};

// Guesses how sequences go on. The engine draws the tokens that it would draw anyway and keeps a
// guess only if it is that token, so guesses change how many tokens a step yields, and nothing else
// (speculative decoding; that the drafter cannot be told from the output is shown by Daliri, Musco
// and Suresh, "Coupling without communication and drafter-invariant speculative decoding", 2024).
class Drafter {
 public:
  virtual ~Drafter() = default;

  // A draft for each ask, in their order: ids of the tokenizer, as many as are wanted and there is
  // room for in all. Asked in steps that do nothing but decode. All ranks of a group must return
  // the same.
  virtual std::vector<std::vector<std::int32_t>> propose(std::span<const DraftAsk> asks,
                                                         const DraftRoom& room) = 0;
  // `tokens` are the last ones of the sequence and what a step has given it; the step had the first
  // `drafted` tokens of its draft, for which there may have been less room than there were guesses.
  // Told of every sequence that decodes, also in steps without drafts.
  virtual void observe(const Sequence& sequence, int drafted,
                       std::span<const std::int32_t> tokens) = 0;
};

}  // namespace taper
