// SPDX-License-Identifier: Apache-2.0
#include "planner/Dealer.hpp"

#include <algorithm>
#include <map>

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

Dealer::Dealer(const Layout& layout) {
  for (const LayoutGroup& group : layout.groups())
    loads_.insert({0, group.tp, static_cast<int>(loads_.size())});
}

std::vector<Deal> Dealer::deal(int samples, std::int64_t prompt_tokens,
                               std::int64_t max_new_tokens) {
  const int most = most_readers(samples, prompt_tokens, max_new_tokens);
  std::set<Load> readers;  // replicas that have some of these, taken out of loads_
  std::map<int, int> dealt;
  for (int i = 0; i < samples; ++i) {
    const bool is_open = static_cast<int>(readers.size()) < most && !loads_.empty();
    const bool is_new = is_open && (readers.empty() || *loads_.begin() < *readers.begin());
    std::set<Load>& from = is_new ? loads_ : readers;
    Load least = from.extract(from.begin()).value();
    ++least.taken;
    ++dealt[least.replica];
    readers.insert(least);
  }
  loads_.merge(readers);
  std::vector<Deal> deals;
  for (const auto& [replica, count] : dealt) deals.push_back({replica, count});
  return deals;
}

}  // namespace taper
