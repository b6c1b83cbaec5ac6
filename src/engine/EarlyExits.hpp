// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/GuessModel.hpp"
#include "engine/ModelRunner.hpp"
#include "kernels/Staging.hpp"

namespace taper {

// What an early exit draws with: a model without layers, whole on every rank, whose vocabulary is a
// part of the policy's.
struct ExitHead {
  int layers = 0;  // of the policy that come before it
  const ModelView* view = nullptr;
  const ModelParallel* parallel = nullptr;  // of this rank alone
  std::span<const std::int32_t> ids;        // of the policy, ascending; all that is referred to
                                            // outlives its use
};

// Guesses of the policy's own first layers (AdaDecode, arXiv 2506.03700): a position whose token is
// sure enough at an early exit waits there, and those after it go on. All later layers of waiting
// positions are computed in one pass, which is that of the step: it verifies the guesses and leaves
// the keys and values that a step for each token would have left. No layer of a position is
// computed twice. Collective over the group of the runner, with the same sequences on all its
// ranks.
class EarlyExits : public GuessModel {
 public:
  // Floats of memory for heads like this one and steps of up to `rows` rows: their streams, and
  // logits of `logit_rows` of them.
  static std::int64_t floats(const ParamTable& head, const ModelParallel& parallel, int rows,
                             int logit_rows);

  // Exits in ascending order, at least one. Works in `memory`.
  EarlyExits(ModelRunner& runner, std::vector<ExitHead> heads, int rows, int logit_rows,
             float* memory);

  bool is_local() const override { return false; }
  bool is_part_of_step() const override { return true; }
  void keep(std::span<const DraftAsk> asks) override;
  // There is room in the blocks that a sequence has already, and for as many positions as a step
  // has rows. With the first contexts of a step, all its sequences come to the first exit.
  std::vector<DrawnToken> draw(std::span<const DraftContext> contexts,
                               const SamplingOptions& sampling) override;
  int rows_read() const override { return rows_read_; }

  // As ModelRunner::forward() of the chunks, which are those of `work`; what draw() has computed
  // since the last call is not computed again. Nothing is left of it after that.
  FloatMatrix forward(std::span<const Work> work, std::span<const Chunk> chunks);

 private:
  // The next positions of a sequence: at which exit each is, counted from 1, and in which row of
  // the streams. No position is at a later exit than the one before it.
  struct Begun {
    const Sequence* sequence = nullptr;
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> rows;
    std::vector<int> exits;  // 0: nothing is computed yet
  };

  Begun& begun(const Sequence& sequence);
  bool set_tokens(Begun& begun, std::span<const std::int32_t> tokens);
  void advance(std::span<Begun* const> sequences, int exit);
  std::vector<DrawnToken> look(int exit, std::span<const DraftContext> contexts,
                               std::span<const std::size_t> open, const SamplingOptions& sampling);

  ModelRunner& runner_;
  std::vector<ExitHead> heads_;
  std::vector<TokenHead> token_heads_;
  FloatMatrix streams_;  // (rows, h)
  std::size_t logit_rows_;
  std::vector<const Sequence*> asked_;  // of the step that follows
  std::map<const Sequence*, Begun> begun_;
  std::vector<std::int32_t> free_rows_;
  int rows_read_ = 0;
};

}  // namespace taper
