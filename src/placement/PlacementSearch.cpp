// SPDX-License-Identifier: Apache-2.0
#include "placement/PlacementSearch.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <random>
#include <set>
#include <tuple>

#include "base/Error.hpp"

namespace taper {
namespace {

// Of the best iteration found so far: how much slower placements are still accepted, at the start
// and at the end of a chain; for each share of memory that a rank lacks, so many times as slow.
constexpr double kHot = 0.1, kCold = 0.002, kOfLack = 4.0;

auto figures(const FoundPlacement& p) {
  return std::tie(p.iteration_ns, p.published_ns, p.rank_bytes);
}

bool is_better(const FoundPlacement& a, const FoundPlacement& b) {
  return std::tuple_cat(figures(a), std::tie(a.choice)) <
         std::tuple_cat(figures(b), std::tie(b.choice));
}

// What the search compares: placements that fit are better than all others, which are the better
// the less memory they lack.
struct Price {
  double lack = 0;  // as a share of what a rank has
  std::int64_t ns = 0;

  friend auto operator<=>(const Price&, const Price&) = default;
};

class Search {
 public:
  Search(const PlacementCosts& costs, const PlacementSearchOptions& options)
      : costs_(costs), options_(options) {}

  // The price of a placement, which is noted if it is among the best.
  Price examine(const PlaceChoice& choice) {
    constexpr double kImpossible = 1e9;  // more than any lack of memory
    ++examined_;
    const std::int64_t ns = costs_.iteration_ns(choice);
    if (!costs_.is_possible(choice)) return {kImpossible, ns};
    const std::int64_t bytes = costs_.rank_bytes(choice);
    if (costs_.memory > 0 && bytes > costs_.memory)
      return {static_cast<double>(bytes - costs_.memory) / static_cast<double>(costs_.memory), ns};
    if (std::ssize(best_) < options_.top || ns <= best_.back().iteration_ns)
      note({choice, ns, costs_.published_ns(choice), bytes});
    return {0, ns};
  }

  void examine_all() {
    PlaceChoice choice(costs_.models.size(), 0);
    for (;;) {
      examine(choice);
      std::size_t m = 0;
      while (m < choice.size() && ++choice[m] == options_of(m)) choice[m++] = 0;
      if (m == choice.size()) return;
    }
  }

  // To a placement that no change of one model improves.
  PlaceChoice descend(PlaceChoice choice) {
    Price price = examine(choice);
    for (bool improved = true; improved;) {
      improved = false;
      for (std::size_t m = 0; m < choice.size(); ++m) {
        int best = choice[m];
        for (int o = 0; o < options_of(m); ++o) {
          choice[m] = o;
          const Price other = examine(choice);
          if (other < price) {
            price = other;
            best = o;
            improved = true;
          }
        }
        choice[m] = best;
      }
    }
    return choice;
  }

  // Simulated annealing from a placement; ends with the best of the chain.
  PlaceChoice anneal(PlaceChoice choice, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Price price = examine(choice);
    PlaceChoice best = choice;
    Price best_price = price;
    for (int i = 0; i < options_.moves; ++i) {
      const double heat =
          kHot * std::pow(kCold / kHot, static_cast<double>(i) / std::max(1, options_.moves - 1));
      PlaceChoice next = choice;
      change(next, random);
      const Price other = examine(next);
      const double slower = static_cast<double>(other.ns - price.ns) /
                            static_cast<double>(std::max<std::int64_t>(1, best_price.ns));
      const double worse = other.lack != price.lack ? kOfLack * (other.lack - price.lack) : slower;
      if (worse > 0 && uniform(random) >= std::exp(-worse / heat)) continue;
      choice = std::move(next);
      price = other;
      if (price < best_price) {
        best = choice;
        best_price = price;
      }
    }
    return best;
  }

  FoundPlacements result(bool is_exhaustive) && {
    return {std::move(best_), is_exhaustive, examined_};
  }

 private:
  int options_of(std::size_t model) const {
    return static_cast<int>(costs_.models[model].options.size());
  }

  void note(FoundPlacement found) {
    const auto alike = std::find_if(best_.begin(), best_.end(), [&](const FoundPlacement& p) {
      return figures(p) == figures(found);
    });
    if (alike != best_.end()) {
      if (is_better(found, *alike)) *alike = std::move(found);
      return;
    }
    best_.insert(std::upper_bound(best_.begin(), best_.end(), found, is_better), std::move(found));
    if (std::ssize(best_) > options_.top) best_.pop_back();
  }

  static double uniform(std::mt19937_64& random) {
    return static_cast<double>(random() >> 11) * 0x1p-53;
  }
  static int below(int n, std::mt19937_64& random) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(n));
  }

  // Another option of one model, or the layouts of two models exchanged.
  void change(PlaceChoice& choice, std::mt19937_64& random) const {
    const auto models = static_cast<int>(choice.size());
    const auto a = static_cast<std::size_t>(below(models, random));
    const auto b = static_cast<std::size_t>(below(models, random));
    if (a == b || below(3, random) > 0) {
      choice[a] = below(options_of(a), random);
      return;
    }
    const auto of_a = costs_.models[a].find(costs_.option(choice, b).layout);
    const auto of_b = costs_.models[b].find(costs_.option(choice, a).layout);
    if (!of_a || !of_b) return;
    choice[a] = *of_a;
    choice[b] = *of_b;
  }

  const PlacementCosts& costs_;
  const PlacementSearchOptions& options_;
  std::vector<FoundPlacement> best_;
  std::int64_t examined_ = 0;
};

// The tensor-parallel degrees of all options, ascending.
std::set<int> degrees_of(const PlacementCosts& costs) {
  std::set<int> degrees;
  for (const PlaceableModel& model : costs.models)
    for (const PlaceOption& option : model.options) degrees.insert(option.layout.grid.tp);
  return degrees;
}

// Every model at this degree, if it can be, in the first of its options.
PlaceChoice all_at(const PlacementCosts& costs, int tp) {
  PlaceChoice choice;
  for (const PlaceableModel& model : costs.models) {
    const auto at = std::find_if(model.options.begin(), model.options.end(),
                                 [&](const PlaceOption& o) { return o.layout.grid.tp == tp; });
    choice.push_back(at == model.options.end() ? 0 : static_cast<int>(at - model.options.begin()));
  }
  return choice;
}

}  // namespace

FoundPlacements search_placements(const PlacementCosts& costs,
                                  const PlacementSearchOptions& options,
                                  const std::vector<PlaceChoice>& starts) {
  TAPER_EXPECT(options.top >= 1);
  for (const PlaceableModel& model : costs.models) TAPER_EXPECT(!model.options.empty());
  Search search(costs, options);
  const bool is_exhaustive = costs.placements(options.exhaustive + 1) <= options.exhaustive;
  if (is_exhaustive) {
    search.examine_all();
    return std::move(search).result(true);
  }
  std::vector<PlaceChoice> from = starts;
  for (const int tp : degrees_of(costs)) from.push_back(all_at(costs, tp));
  for (PlaceChoice& start : from) start = search.descend(std::move(start));
  for (int chain = 0; chain < options.chains; ++chain) {
    const PlaceChoice& start = from[static_cast<std::size_t>(chain) % from.size()];
    search.descend(search.anneal(start, options.seed + static_cast<std::uint64_t>(chain)));
  }
  return std::move(search).result(false);
}

}  // namespace taper
