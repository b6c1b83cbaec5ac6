// SPDX-License-Identifier: Apache-2.0
#include "session/LayoutChecks.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "shard/Layout.hpp"

namespace taper {

DivisorChain chain_with(int ranks, std::vector<int> degrees) {
  degrees.push_back(1);
  degrees.push_back(ranks);
  std::sort(degrees.begin(), degrees.end());
  degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
  std::vector<int> chain{1};
  for (std::size_t i = 1; i < degrees.size(); ++i) {
    const int from = degrees[i - 1], to = degrees[i];
    TAPER_VALIDATE(ranks % to == 0, "tensor-parallel degree "
                                        << to << " on " << ranks
                                        << " ranks (it must divide them); choose a divisor");
    TAPER_VALIDATE(to % from == 0, "tensor-parallel degrees "
                                       << from << " and " << to << " on " << ranks
                                       << " ranks (one must divide the other); choose degrees of "
                                          "which each divides the next");
    const DivisorChain steps = DivisorChain::of(to / from);
    for (std::size_t s = 1; s < steps.degrees().size(); ++s)
      chain.push_back(from * steps.degrees()[s]);
  }
  return DivisorChain(chain);
}

std::vector<int> require_divisible(int ranks, const NamedDegrees& degrees) {
  for (const auto& [option, degree] : degrees)
    TAPER_VALIDATE(ranks % degree == 0,
                   option << " is " << degree << " (it must divide the " << ranks
                          << " ranks); choose a divisor, or start another number of ranks");
  for (const auto& [option, degree] : degrees)
    for (const auto& [other, larger] : degrees)
      TAPER_VALIDATE(larger < degree || larger % degree == 0,
                     option << " is " << degree << " and " << other << " is " << larger << " on "
                            << ranks
                            << " ranks (one must divide the other); choose degrees of which each "
                               "divides the next");
  std::vector<int> alone;
  for (const auto& [option, degree] : degrees) alone.push_back(degree);
  return alone;
}

void require_layout(const std::string& option, const std::string& text, int ranks) {
  if (text.empty()) return;
  const auto degrees = group_degrees(text);
  TAPER_VALIDATE(degrees, option << " is '" << text << "' (expected: " << layout_forms() << ")");
  const std::string problem = layout_problem(*degrees, ranks);
  TAPER_VALIDATE(problem.empty(), option << " is " << text << " " << problem);
}

}  // namespace taper
