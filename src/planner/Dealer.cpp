// SPDX-License-Identifier: Apache-2.0
#include "planner/Dealer.hpp"

#include <algorithm>

namespace taper {
namespace {

// All further readings of a prompt have at most one in so many of the tokens that its responses may
// have. Responses mostly have a tenth of these, and a position that is read costs half as much as
// one that is generated: it is 3 % of the work at most (doc/decisions/0003-dealing-responses.md).
constexpr std::int64_t kTokensPerReread = 160;

}  // namespace

int most_readers(int samples, std::int64_t prompt_tokens, std::int64_t max_new_tokens) {
  const std::int64_t rereads =
      samples * max_new_tokens / (kTokensPerReread * std::max<std::int64_t>(1, prompt_tokens));
  return static_cast<int>(std::clamp<std::int64_t>(1 + rereads, 1, std::max(1, samples)));
}

Dealer::Dealer(const Layout& layout) : taken_(layout.groups().size(), 0) {
  for (const LayoutGroup& group : layout.groups()) ranks_.push_back(group.tp);
}

int Dealer::least_loaded(const std::vector<int>& dealt, bool among_dealt) const {
  int best = -1;
  for (std::size_t r = 0; r < taken_.size(); ++r) {
    if (among_dealt && dealt[r] == 0) continue;
    if (best < 0 || taken_[r] * ranks_[best] < taken_[best] * ranks_[r]) best = static_cast<int>(r);
  }
  return best;
}

std::vector<int> Dealer::deal(int samples, std::int64_t prompt_tokens,
                              std::int64_t max_new_tokens) {
  const int most = most_readers(samples, prompt_tokens, max_new_tokens);
  std::vector<int> dealt(taken_.size(), 0);
  int replicas = 0;
  for (int i = 0; i < samples; ++i) {
    const int best = least_loaded(dealt, replicas >= most);
    if (dealt[best]++ == 0) ++replicas;
    ++taken_[best];
  }
  return dealt;
}

}  // namespace taper
