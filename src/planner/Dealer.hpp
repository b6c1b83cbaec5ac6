// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "shard/Layout.hpp"

namespace taper {

// Replicas that the responses to a prompt begin on, at most: each of them reads it.
int most_readers(int samples, std::int64_t prompt_tokens, std::int64_t max_new_tokens);

// Responses to one prompt that begin on a replica.
struct Deal {
  int replica = 0, samples = 0;
  friend bool operator==(const Deal&, const Deal&) = default;
};

// Deals the responses of a generation to replicas, prompt after prompt, each response to the
// replica that has the fewest per rank. Responses to one prompt are often alike in length
// (PromptLikeness): were they all on one replica, it would end much sooner or later than the
// others. So they go to as many replicas as may read the prompt. A response costs the logarithm of
// the number of replicas.
class Dealer {
 public:
  explicit Dealer(const Layout& layout);

  // The replicas that begin with responses to the next prompt, ascending.
  std::vector<Deal> deal(int samples, std::int64_t prompt_tokens, std::int64_t max_new_tokens);

 private:
  struct Load {
    std::int64_t taken, ranks;
    int replica;
    // By responses per rank, then by number.
    friend bool operator<(const Load& a, const Load& b) {
      const std::int64_t left = a.taken * b.ranks, right = b.taken * a.ranks;
      return left != right ? left < right : a.replica < b.replica;
    }
  };
  std::set<Load> loads_;
};

}  // namespace taper
