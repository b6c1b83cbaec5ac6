// SPDX-License-Identifier: Apache-2.0
#include "shard/Layout.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <set>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {

Layout::Layout(const std::vector<int>& degrees, const DivisorChain& chain) {
  const std::string problem = layout_problem(degrees, chain.ranks());
  TAPER_VALIDATE(problem.empty(), "layout " << join(degrees, "+") << " " << problem);
  int next = 0;
  for (const int tp : degrees) {
    TAPER_VALIDATE(chain.has(tp), "layout " << join(degrees, "+") << " has tensor-parallel degree "
                                            << tp << " (not possible in this run); choose from "
                                            << join(chain.degrees())
                                            << " (doc/planner.md#which-layouts-are-possible)");
    groups_.push_back({next, tp});
    next += tp;
  }
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

std::vector<bool> changed_groups(const Layout& from, const Layout& to) {
  const auto& after = to.groups();
  std::vector<bool> changed;
  for (const LayoutGroup& group : from.groups())
    changed.push_back(std::find(after.begin(), after.end(), group) == after.end());
  return changed;
}

std::string to_string(const Layout& layout) {
  if (layout.is_uniform())
    return to_string(RankGrid{layout.groups().front().tp, layout.replicas()});
  std::vector<int> degrees;
  for (const LayoutGroup& g : layout.groups()) degrees.push_back(g.tp);
  return join(degrees, "+");
}

std::optional<std::vector<int>> group_degrees(const std::string& text) {
  constexpr int kMostGroups = 1'000'000;
  if (text.find_first_of("xX") != std::string::npos) {
    const auto grid = find_rank_grid(text);
    if (!grid || grid->dp > kMostGroups) return std::nullopt;
    return std::vector<int>(static_cast<std::size_t>(grid->dp), grid->tp);
  }
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (bool more = true; more;) {
    int number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    const bool good = error == std::errc{} && number > 0;
    more = good && after != end && *after == '+';
    if (!good || (!more && after != end)) return std::nullopt;
    numbers.push_back(number);
    at = after + 1;
  }
  return numbers;
}

std::string layout_forms() {
  return std::string(kGridForm) +
         ", or the degrees of the groups in rank order, e.g. 4+2+2 for one of 4 and two of 2";
}

std::string layout_problem(const std::vector<int>& degrees, int ranks) {
  const auto text = [](auto number) { return std::to_string(number); };
  const auto covered = std::accumulate(degrees.begin(), degrees.end(), std::int64_t{0});
  if (covered != ranks)
    return "(for " + text(covered) + " ranks; there are " + text(ranks) +
           "); start that many ranks, or choose another layout";
  int next = 0;
  for (const int tp : degrees) {
    if (ranks % tp != 0)
      return "(degree " + text(tp) + " does not divide the " + text(ranks) +
             " ranks); choose another layout";
    if (next % tp != 0)
      return "(its group of " + text(tp) + " starts at rank " + text(next) +
             ", which is not a multiple of " + text(tp) + "); put larger groups first";
    next += tp;
  }
  const std::set<int> different(degrees.begin(), degrees.end());
  for (auto small = different.begin(), large = std::next(small); large != different.end();
       ++small, ++large)
    if (*large % *small != 0)
      return "(degrees " + text(*small) + " and " + text(*large) +
             ": one must divide the other); choose another layout";
  return {};
}

Layout parse_layout(const std::string& text, const DivisorChain& chain) {
  const auto degrees = group_degrees(text);
  TAPER_VALIDATE(degrees, "layout '" << text << "' (expected: " << layout_forms() << ")");
  return Layout(*degrees, chain);
}

}  // namespace taper
