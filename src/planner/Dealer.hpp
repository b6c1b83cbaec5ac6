// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shard/Layout.hpp"

namespace taper {

// Replicas that the responses to a prompt begin on, at most: each of them reads it.
int most_readers(int samples, std::int64_t prompt_tokens, std::int64_t max_new_tokens);

// Deals the responses of a generation to replicas, prompt after prompt, each response to the
// replica that has the fewest per rank. Responses to one prompt are often alike in length
// (PromptLikeness): were they all on one replica, it would end much sooner or later than the
// others. So they go to as many replicas as may read the prompt.
class Dealer {
 public:
  explicit Dealer(const Layout& layout);

  // Responses to the next prompt on each replica, (replicas).
  std::vector<int> deal(int samples, std::int64_t prompt_tokens, std::int64_t max_new_tokens);

 private:
  int least_loaded(const std::vector<int>& dealt, bool among_dealt) const;

  std::vector<std::int64_t> ranks_, taken_;  // by replica
};

}  // namespace taper
