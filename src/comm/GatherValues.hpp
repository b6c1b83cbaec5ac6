// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/Packing.hpp"
#include "comm/Collectives.hpp"

namespace taper {

// What each rank of the group gives, of any type that base/Packing.hpp knows, in rank order.
// Collective over `group`.
template <class T>
std::vector<T> all_gather_values(const Group& group, const T& mine) {
  std::vector<T> all;
  for (const std::string& bytes : all_gather_string(group, packed(mine)))
    all.push_back(unpacked<T>(bytes));
  return all;
}

}  // namespace taper
