// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace taper {

// Which blocks of the KV pool are in use, and by how many sequences. Pure bookkeeping on the host:
// ranks of a group that make the same calls hold the same blocks.
class BlockManager {
 public:
  explicit BlockManager(int blocks);
  // As after calls that left each block with so many users.
  explicit BlockManager(std::vector<int> users);

  int total() const { return static_cast<int>(users_.size()); }
  int free() const { return static_cast<int>(free_.size()); }

  // A free block, with one user. There must be one.
  std::int32_t allocate();
  // One more, or one less, user of a block.
  void share(std::int32_t block);
  void release(std::int32_t block);
  int users(std::int32_t block) const { return users_[block]; }

 private:
  std::vector<int> users_;
  std::vector<std::int32_t> free_;  // a stack, lowest ids on top at the start
};

}  // namespace taper
