// SPDX-License-Identifier: Apache-2.0
#include "engine/Truncation.hpp"

#include <algorithm>
#include <utility>

#include "base/Error.hpp"

namespace taper {

int levels_to_keep(std::span<const MassLevel> levels, std::int64_t total,
                   const SamplingOptions& options) {
  MassLevel above;
  int level = 0;
  for (; level < static_cast<int>(levels.size()); ++level) {
    const double most = 2 * static_cast<double>(least_mass(level));  // of this level, all below it
    const bool has_share =
        options.top_p < 1.0f && static_cast<double>(above.mass) >=
                                    static_cast<double>(options.top_p) * static_cast<double>(total);
    const bool is_unlikely =
        most <= static_cast<double>(options.min_p) * static_cast<double>(least_mass(0));
    const bool is_enough =
        options.top_k > 0 ? above.ids >= options.top_k : has_share || is_unlikely;
    if (above.ids > 0 && is_enough) break;
    above += levels[level];
  }
  return level;
}

KeptIds truncate(std::vector<WeightedId> heaviest, std::int64_t total,
                 const SamplingOptions& options) {
  TAPER_INSIST(!heaviest.empty(), "no token has a probability");
  std::sort(heaviest.begin(), heaviest.end(), [](const WeightedId& a, const WeightedId& b) {
    return a.mass != b.mass ? a.mass > b.mass : a.id < b.id;
  });
  const std::size_t limit =
      options.top_k > 0 ? std::min<std::size_t>(options.top_k, heaviest.size()) : heaviest.size();
  // Mass that top-k leaves; top-p is a share of it.
  std::int64_t available = total;
  if (options.top_k > 0) {
    available = 0;
    for (std::size_t i = 0; i < limit; ++i) available += heaviest[i].mass;
  }
  const double wanted = static_cast<double>(options.top_p) * static_cast<double>(available);
  const double least =
      static_cast<double>(options.min_p) * static_cast<double>(heaviest.front().mass);
  KeptIds kept;
  std::size_t n = 0;
  for (; n < limit; ++n) {
    const bool enough = options.top_p < 1.0f && static_cast<double>(kept.mass) >= wanted;
    if (n > 0 && (enough || static_cast<double>(heaviest[n].mass) < least)) break;
    kept.mass += heaviest[n].mass;
  }
  heaviest.resize(n);
  std::sort(heaviest.begin(), heaviest.end(),
            [](const WeightedId& a, const WeightedId& b) { return a.id < b.id; });
  kept.ids = std::move(heaviest);
  return kept;
}

const WeightedId& KeptIds::at(std::int64_t target) const {
  for (const WeightedId& id : ids)
    if ((target -= id.mass) < 0) return id;
  TAPER_FAIL(ExitCode::kFailure, "a draw passed the mass of all tokens that were kept");
}

}  // namespace taper
