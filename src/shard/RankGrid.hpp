// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace taper {

// The divisor chain that fixes how ranks group at every tensor-parallel degree: 1 = c0 | c1 | c2 |
// ... with c0 = 1. A rank's shard index in its group of degree t is its digit-reversed local rank
// in the mixed radix of the chain, so that the shard of a larger group lies inside the one held
// before, by whatever path of merges (nested shards).
class DivisorChain {
 public:
  // Degrees must start at 1, each dividing the next. Throws Error otherwise.
  explicit DivisorChain(std::vector<int> degrees);
  // The chain of the smallest prime factors first: 8 -> 1,2,4,8; 6 -> 1,2,6; 1 -> 1.
  static DivisorChain of(int ranks);

  const std::vector<int>& degrees() const { return degrees_; }
  int ranks() const { return degrees_.back(); }
  bool has(int degree) const;

  // Shard index of `rank` in its group of `degree` (which must be in the chain).
  int shard_index(int rank, int degree) const;
  // The ranks of group `group` of `degree`, in the order of their shard indices.
  std::vector<int> group(int degree, int group) const;

 private:
  std::vector<int> degrees_;
};

// A uniform layout of `ranks` ranks: tp * dp = ranks. Replica g consists of ranks [g*tp, (g+1)*tp).
struct RankGrid {
  int tp = 1;
  int dp = 1;

  int ranks() const { return tp * dp; }
  int replica_of(int rank) const { return rank / tp; }
  friend bool operator==(const RankGrid&, const RankGrid&) = default;
};

// The form, for messages.
inline constexpr const char* kGridForm = "TPxDP, e.g. 2x4 for four replicas of 2 ranks";
// "2x4" -> {tp 2, dp 4}; nothing for another form.
std::optional<RankGrid> find_rank_grid(const std::string& text);
// The same; throws Error with the expected form.
RankGrid parse_rank_grid(const std::string& text);
std::string to_string(const RankGrid& grid);

}  // namespace taper
