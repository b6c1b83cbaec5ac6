// SPDX-License-Identifier: Apache-2.0
#include "engine/Truncation.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/Error.hpp"

namespace taper {

KeptSet truncate(std::span<const std::int64_t> masses, std::int64_t total,
                 const SamplingOptions& options) {
  std::vector<std::int32_t> order(masses.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return masses[a] != masses[b] ? masses[a] > masses[b] : a < b;
  };
  const std::size_t limit =
      options.top_k > 0 ? std::min<std::size_t>(options.top_k, order.size()) : order.size();
  // Mass that top-k leaves; top-p is a share of it.
  std::int64_t available = total;
  if (limit < order.size()) {
    std::nth_element(order.begin(), order.begin() + limit, order.end(), before);
    available = 0;
    for (std::size_t i = 0; i < limit; ++i) available += masses[order[i]];
  }
  const double wanted = static_cast<double>(options.top_p) * static_cast<double>(available);
  KeptSet kept;
  std::size_t sorted = 0;
  double floor_mass = 0.0;
  for (std::size_t i = 0; i < limit; ++i) {
    if (i == sorted) {  // few ids matter, usually: sort a growing prefix
      sorted = std::min(limit, std::max<std::size_t>(256, 4 * sorted));
      std::partial_sort(order.begin() + i, order.begin() + sorted, order.begin() + limit, before);
    }
    const std::int64_t mass = masses[order[i]];
    if (i == 0) floor_mass = static_cast<double>(options.min_p) * static_cast<double>(mass);
    const bool enough = options.top_p < 1.0f && static_cast<double>(kept.mass) >= wanted;
    if (i > 0 && (mass == 0 || enough || static_cast<double>(mass) < floor_mass)) break;
    kept.mass += mass;
    kept.threshold_mass = mass;
    kept.threshold_id = order[i];
  }
  return kept;
}

std::int32_t pick(std::span<const std::int64_t> masses, const KeptSet& kept, std::int64_t target) {
  std::int32_t last = -1;
  for (std::size_t id = 0; id < masses.size(); ++id) {
    if (!kept.keeps(masses[id], static_cast<std::int32_t>(id))) continue;
    last = static_cast<std::int32_t>(id);
    target -= masses[id];
    if (target < 0) return last;
  }
  TAPER_FAIL(ExitCode::kFailure, "a draw passed the mass of all tokens that were kept");
}

}  // namespace taper
