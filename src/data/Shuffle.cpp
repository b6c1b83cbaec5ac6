// SPDX-License-Identifier: Apache-2.0
#include "data/Shuffle.hpp"

#include <numeric>
#include <utility>

#include "base/Random.hpp"

namespace taper {

std::vector<int> shuffled(int count, std::uint64_t seed, std::uint64_t pass, std::uint64_t stream) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(seed, RandomPurpose::kData, stream, pass);
  for (int i = count - 1; i > 0; --i)
    std::swap(order[i], order[random.below(static_cast<std::uint64_t>(i) + 1)]);
  return order;
}

}  // namespace taper
