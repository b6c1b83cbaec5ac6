// SPDX-License-Identifier: Apache-2.0
#include "shard/Shard.hpp"

#include "base/Error.hpp"

namespace taper {

Range shard_range(int units, int degree, int index) {
  TAPER_EXPECT(degree > 0 && index >= 0 && index < degree);
  const auto boundary = [&](std::int64_t i) { return static_cast<int>(i * units / degree); };
  return {boundary(index), boundary(index + 1)};
}

int shard_of_unit(int units, int degree, int unit) {
  TAPER_EXPECT(unit >= 0 && unit < units);
  // The largest i with floor(i*U/t) <= unit.
  return static_cast<int>(((static_cast<std::int64_t>(unit) + 1) * degree - 1) / units);
}

}  // namespace taper
