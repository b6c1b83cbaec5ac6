// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "shard/RankGrid.hpp"

namespace taper {

// Consecutive ranks.
struct RankBlock {
  int first = 0;
  int count = 1;

  int end() const { return first + count; }
  bool has(int rank) const { return first <= rank && rank < end(); }
  bool overlaps(const RankBlock& other) const { return first < other.end() && other.first < end(); }
  bool contains(const RankBlock& other) const {
    return first <= other.first && other.end() <= end();
  }
  friend bool operator==(const RankBlock&, const RankBlock&) = default;
};

// The ranks that a model is on, and how it lies on them: replica g is on the ranks
// [first + g * tp, first + (g + 1) * tp) of all.
struct ModelLayout {
  int first = 0;
  RankGrid grid;

  RankBlock ranks() const { return {first, grid.ranks()}; }
  bool is_on_all(int ranks) const { return grid.ranks() == ranks; }
  friend bool operator==(const ModelLayout&, const ModelLayout&) = default;
};

// "4-7", or "4" for one rank.
std::string to_string(const RankBlock& ranks);
// "4-7:2x2": ranks 4 to 7, tensor parallel 2, data parallel 2.
std::string to_string(const ModelLayout& layout);

// What a text says of the ranks of a model.
struct ModelRanks {
  RankBlock ranks;
  std::optional<RankGrid> grid;  // of as many ranks
};

// The forms, for messages.
inline constexpr const char* kModelRanksForm =
    "FIRST-LAST or FIRST-LAST:TPxDP with TP x DP ranks, e.g. 4-7, or 4-7:2x2 for two replicas of 2";
// "4-7", "4" (one rank) and "4-7:2x2"; nothing for another form, or if the grid has another number
// of ranks.
std::optional<ModelRanks> find_model_ranks(const std::string& text);

// Why the chain has no such block, and what to do; empty if it has: of a degree of the chain, at a
// multiple of it, so that groups of the block are groups of all ranks.
std::string block_problem(const RankBlock& ranks, const DivisorChain& chain);

}  // namespace taper
