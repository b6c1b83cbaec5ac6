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

Layout parse_layout(const std::string& text, const DivisorChain& chain) {
  if (text.find_first_of("xX") != std::string::npos) {
    const RankGrid grid = parse_rank_grid(text);
    TAPER_VALIDATE(grid.ranks() == chain.ranks(), "layout '" << text << "' has " << grid.ranks()
                                                             << " ranks (there are "
                                                             << chain.ranks() << ")");
    return Layout::uniform(grid.tp, chain);
  }
  std::vector<int> degrees;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (bool more = true; more;) {
    int degree = 0;
    const auto [after, error] = std::from_chars(at, end, degree);
    more = error == std::errc{} && after != end && *after == '+';
    TAPER_VALIDATE(
        error == std::errc{} && degree > 0 && (more || after == end),
        "layout '" << text
                   << "' (expected TPxDP, e.g. 2x4, or the degrees of the groups in rank "
                      "order, e.g. 4+2+2)");
    degrees.push_back(degree);
    at = after + 1;
  }
  return Layout(degrees, chain);
}

}  // namespace taper
