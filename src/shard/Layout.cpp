// SPDX-License-Identifier: Apache-2.0
#include "shard/Layout.hpp"

#include <algorithm>
#include <charconv>

#include "base/Error.hpp"

namespace taper {

Layout::Layout(const std::vector<int>& degrees, const DivisorChain& chain) {
  int next = 0;
  for (const int tp : degrees) {
    TAPER_VALIDATE(chain.has(tp), "a layout has tensor-parallel degree "
                                      << tp << " (not a degree of the divisor chain of "
                                      << chain.ranks() << " ranks); choose one of its degrees");
    TAPER_VALIDATE(next % tp == 0, "a layout has a group of " << tp << " ranks that starts at rank "
                                                              << next
                                                              << " (groups must start at a "
                                                                 "multiple of their degree)");
    groups_.push_back({next, tp});
    next += tp;
  }
  TAPER_VALIDATE(next == chain.ranks(),
                 "a layout covers " << next << " ranks (there are " << chain.ranks() << ")");
}

Layout Layout::uniform(int tp, const DivisorChain& chain) {
  TAPER_VALIDATE(tp > 0 && chain.ranks() % tp == 0, "tensor-parallel degree "
                                                        << tp << " (must divide the "
                                                        << chain.ranks() << " ranks)");
  return Layout(std::vector<int>(chain.ranks() / tp, tp), chain);
}

int Layout::replica_of(int rank) const {
  const auto after = std::upper_bound(groups_.begin(), groups_.end(), rank,
                                      [](int r, const LayoutGroup& g) { return r < g.first; });
  return static_cast<int>(after - groups_.begin()) - 1;
}

bool Layout::is_uniform() const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [&](const LayoutGroup& g) { return g.tp == groups_.front().tp; });
}

std::string to_string(const Layout& layout) {
  if (layout.is_uniform())
    return to_string(RankGrid{layout.groups().front().tp, layout.replicas()});
  std::string text;
  for (const LayoutGroup& g : layout.groups()) {
    if (!text.empty()) text += '+';
    text += std::to_string(g.tp);
  }
  return text;
}

std::optional<std::vector<int>> group_degrees(const std::string& text) {
  constexpr int kMostGroups = 1'000'000;
  std::vector<int> numbers;
  const bool is_grid = text.find_first_of("xX") != std::string::npos;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (bool more = true; more;) {
    int number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    const bool good = error == std::errc{} && number > 0;
    more = good && after != end && (is_grid ? *after == 'x' || *after == 'X' : *after == '+');
    if (!good || (!more && after != end)) return std::nullopt;
    numbers.push_back(number);
    at = after + 1;
  }
  if (!is_grid) return numbers;
  if (numbers.size() != 2 || numbers[1] > kMostGroups) return std::nullopt;
  return std::vector<int>(static_cast<std::size_t>(numbers[1]), numbers[0]);
}

Layout parse_layout(const std::string& text, const DivisorChain& chain) {
  const auto degrees = group_degrees(text);
  TAPER_VALIDATE(degrees, "layout '" << text
                                     << "' (expected TPxDP, e.g. 2x4, or the degrees of the groups "
                                        "in rank order, e.g. 4+2+2)");
  return Layout(*degrees, chain);
}

}  // namespace taper
