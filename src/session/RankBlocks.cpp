// SPDX-License-Identifier: Apache-2.0
#include "session/RankBlocks.hpp"

#include "base/Error.hpp"

namespace taper {
namespace {

// Those of the chain that a block of so many ranks can have: its chain is the beginning of that of
// all ranks, so that shards on a block nest in those on others.
std::vector<int> degrees_up_to(int size, const DivisorChain& chain) {
  std::vector<int> degrees;
  for (const int degree : chain.degrees())
    if (degree <= size) degrees.push_back(degree);
  return degrees;
}

}  // namespace

ModelPlace place_on_all(const Ranks& ranks, int tp) {
  return {{0, {tp, ranks.size() / tp}}, &ranks};
}

RankBlocks::RankBlocks(const Ranks& all, const std::vector<int>& sizes) : all_(&all) {
  for (const int size : sizes) {
    TAPER_INSIST(all.chain.has(size),
                 "blocks of " << size << " ranks are not in the divisor chain");
    if (size == all.size() || blocks_.contains(size)) continue;
    const int first = all.rank() / size * size;
    // (std::make_unique would move it, which a Ranks cannot.)
    blocks_.emplace(size, new Ranks(all.block(first, size, degrees_up_to(size, all.chain))));
  }
}

const Ranks* RankBlocks::find(const RankBlock& block) const {
  if (!has(block)) return nullptr;
  if (block.count == all_->size()) return all_;
  const auto found = blocks_.find(block.count);
  TAPER_INSIST(found != blocks_.end(), "no blocks of " << block.count << " ranks were made");
  return found->second.get();
}

}  // namespace taper
