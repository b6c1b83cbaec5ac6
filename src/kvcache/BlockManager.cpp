// SPDX-License-Identifier: Apache-2.0
#include "kvcache/BlockManager.hpp"

#include <utility>

#include "base/Error.hpp"

namespace taper {

BlockManager::BlockManager(int blocks) : BlockManager(std::vector<int>(blocks, 0)) {}

BlockManager::BlockManager(std::vector<int> users) : users_(std::move(users)) {
  // The lowest ids on top: a cache that is never full touches only the front of its memory. And all
  // ranks of a group that adopt the same users go on with the same blocks, whatever they did
  // before.
  for (int block = total() - 1; block >= 0; --block)
    if (users_[block] == 0) free_.push_back(block);
}

std::int32_t BlockManager::allocate() {
  TAPER_EXPECT(!free_.empty());
  const std::int32_t block = free_.back();
  free_.pop_back();
  users_[block] = 1;
  return block;
}

void BlockManager::share(std::int32_t block) {
  TAPER_EXPECT(users_[block] > 0);
  ++users_[block];
}

void BlockManager::release(std::int32_t block) {
  TAPER_EXPECT(users_[block] > 0);
  // On top of the stack: the next one to be taken, while its memory may still be in a cache.
  if (--users_[block] == 0) free_.push_back(block);
}

}  // namespace taper
