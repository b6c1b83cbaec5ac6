// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "comm/Group.hpp"

namespace taper::detail {

// Throws Error naming the ranks that differ unless all ranks of the group are at the same
// collective: number, name, element count and root. Pass count -1 if it may differ between
// ranks. Collective over `group`.
void check_same_collective(const Group& group, const char* name, std::uint64_t number,
                           std::int64_t count, int root);

// Stands for one collective of a group that is not null: gives it its number, tells the group's
// Progress while it lasts and, in audit builds (TAPER_AUDIT), checks first that all ranks mean the
// same one.
class CollectiveScope {
 public:
  CollectiveScope(const Group& group, const char* name, std::int64_t count, int root = -1);
  ~CollectiveScope();
  CollectiveScope(const CollectiveScope&) = delete;
  CollectiveScope& operator=(const CollectiveScope&) = delete;

 private:
  Progress* progress_;
};

}  // namespace taper::detail
