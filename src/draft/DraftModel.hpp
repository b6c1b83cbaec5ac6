// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "device/Arena.hpp"
#include "engine/GuessModel.hpp"
#include "engine/ModelRunner.hpp"
#include "kernels/Staging.hpp"
#include "kvcache/BlockManager.hpp"
#include "model/LayerWindows.hpp"

namespace taper {

// A language model, smaller than the policy and with its tokens. It has a cache of its own, of
// which nothing is moved when the layout changes.
class DraftModel : public GuessModel {
 public:
  // `memory` covers all layouts that rebind() will be given, window_memory (LayerWindows::floats)
  // all windows, if there are any.
  DraftModel(const Exec& exec, const EngineSetup& setup, const EngineMemory& memory, Arena& arena,
             MemoryPhase phase, ConstFloatMatrix rope_table, float* window_memory = nullptr);

  // Goes on with nothing in the cache, in this layout: tensor-parallel on the ranks of a replica,
  // or on each rank by itself (a null group). With windows, ranks that have the whole model each
  // share out what comes after the first token of a draft.
  void rebind(const EngineSetup& setup, const LayerWindows* windows = nullptr);
  bool is_local() const override {
    return windows_ == nullptr && runner_.parallel().group().is_null();
  }
  bool is_part_of_step() const override { return false; }

  // Gives back what sequences have in the cache that are not among the asks.
  void keep(std::span<const DraftAsk> asks) override;
  // With windows approximately. No room is no block of the cache. Collective over the group of the
  // layout or of the windows.
  std::vector<DrawnToken> draw(std::span<const DraftContext> contexts,
                               const SamplingOptions& sampling) override;
  // Tokens that the last draw() read: one of each sequence that was asked about in the step before,
  // or two; all those of a new one.
  int rows_read() const override { return rows_read_; }

 private:
  // What the cache has of a sequence.
  struct Cached {
    Staged<std::int32_t> blocks;
    std::vector<std::int32_t> tokens;  // whose keys and values are there
    std::size_t sure = 0;              // of which so many are tokens of the sequence,
    std::size_t exact = 0;             // and so many are not approximations; after draw()
  };
  // A context whose positions from `computed` on are not in the cache yet.
  struct Reading {
    std::size_t context = 0;
    Cached* cached = nullptr;
    int computed = 0;
    bool is_exact = true;  // not by windows

    int pending() const { return static_cast<int>(cached->tokens.size()) - computed; }
  };

  std::optional<Reading> open(std::size_t number, const DraftContext& context);
  void share_prompt(const Sequence& sequence, Cached& cached);
  bool reserve(Cached& cached);
  void release(Cached& cached);
  void read(std::vector<Reading>& readings, const LayerWindows* windows,
            std::span<const DraftContext> contexts, const SamplingOptions& sampling,
            std::vector<DrawnToken>& drawn);

  ModelRunner runner_;
  const LayerWindows* windows_ = nullptr;
  float* window_memory_;
  BlockManager blocks_;
  std::map<ResponseId, Cached> cached_;
  int rows_read_ = 0;
};

}  // namespace taper
