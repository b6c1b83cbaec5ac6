// SPDX-License-Identifier: Apache-2.0
#include "placement/PlacementCosts.hpp"

#include <algorithm>

#include "base/Error.hpp"

namespace taper {
namespace {

// Ranks that make calls one after the other, each when all of its ranks are free.
class Stage {
 public:
  Stage(int ranks, std::int64_t begin_ns) : free_(static_cast<std::size_t>(ranks), begin_ns) {}

  void add(const PlaceableModel& model, const ModelLayout& layout, std::int64_t ns,
           std::vector<PlayedCall>* calls) {
    has_blocks_ = has_blocks_ || !layout.is_on_all(static_cast<int>(free_.size()));
    const auto first = free_.begin() + layout.first, last = first + layout.grid.ranks();
    const std::int64_t begin = *std::max_element(first, last);
    std::fill(first, last, begin + ns);
    if (calls != nullptr) calls->push_back({model.name, layout, begin, begin + ns});
  }
  std::int64_t end(std::int64_t exchange_ns) const {
    return *std::max_element(free_.begin(), free_.end()) + (has_blocks_ ? exchange_ns : 0);
  }

 private:
  std::vector<std::int64_t> free_;
  bool has_blocks_ = false;
};

}  // namespace

std::optional<int> PlaceableModel::find(const ModelLayout& layout) const {
  const auto at = std::find_if(options.begin(), options.end(),
                               [&](const PlaceOption& o) { return o.layout == layout; });
  if (at == options.end()) return std::nullopt;
  return static_cast<int>(at - options.begin());
}

const ModelLayout& layout_of(const PlaceableModel& model, const Placement& placement,
                             const ModelSet& models) {
  if (model.role == ModelRole::kPolicy) return placement.policy;
  if (model.role == ModelRole::kGeneration) return placement.generation;
  if (model.role == ModelRole::kCritic) return *placement.critic;
  const auto at = std::find_if(models.scoring.begin(), models.scoring.end(),
                               [&](const ScoringModel& s) { return s.option == model.key; });
  TAPER_EXPECT(at != models.scoring.end());
  return placement.scoring[static_cast<std::size_t>(at - models.scoring.begin())];
}

std::int64_t PlacementCosts::iteration_ns(const PlaceChoice& choice,
                                          std::vector<PlayedCall>* calls) const {
  std::int64_t at = 0;
  const auto play = [&](const auto& belongs, std::int64_t PlaceOption::*ns, std::int64_t exchange) {
    Stage stage(ranks, at);
    // As runs do it: calls on all ranks come after those of blocks.
    for (const bool on_all : {false, true})
      for (std::size_t m = 0; m < models.size(); ++m) {
        const PlaceOption& o = option(choice, m);
        if (belongs(models[m].role) && o.layout.is_on_all(ranks) == on_all)
          stage.add(models[m], o.layout, o.*ns, calls);
      }
    at = stage.end(exchange);
  };
  play([](ModelRole role) { return role == ModelRole::kGeneration; }, &PlaceOption::score_ns, 0);
  play([](ModelRole role) { return role == ModelRole::kScoring || role == ModelRole::kCritic; },
       &PlaceOption::score_ns, exchange_ns);
  play(learns, &PlaceOption::update_ns, exchange_ns);
  return at + published_ns(choice);
}

std::size_t PlacementCosts::index_of(ModelRole role) const {
  const auto at = std::find_if(models.begin(), models.end(),
                               [&](const PlaceableModel& model) { return model.role == role; });
  TAPER_EXPECT(at != models.end());
  return static_cast<std::size_t>(at - models.begin());
}

bool PlacementCosts::is_possible(const PlaceChoice& choice) const {
  for (std::size_t a = 0; a < models.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      if (!models[a].works_early || !models[b].works_early) continue;
      if (!can_take_turns(option(choice, a).layout, option(choice, b).layout)) return false;
    }
  return true;
}

std::int64_t PlacementCosts::published_ns(const PlaceChoice& choice) const {
  if (!publish_ns) return 0;
  return publish_ns(option(choice, index_of(ModelRole::kPolicy)).layout,
                    option(choice, index_of(ModelRole::kGeneration)).layout);
}

// Two blocks contain one another or share no rank, so what ranks hold changes only where a block
// begins or, for the weights of the generation, where that of the policy ends.
std::int64_t PlacementCosts::rank_bytes(const PlaceChoice& choice) const {
  const PlaceOption& trained = option(choice, index_of(ModelRole::kPolicy));
  const RankBlock policy = trained.layout.ranks();
  const auto bytes_of = [&](int rank) {
    std::int64_t sum = 0, work = 0;
    for (std::size_t m = 0; m < models.size(); ++m) {
      const PlaceOption& o = option(choice, m);
      if (!o.layout.ranks().has(rank)) continue;
      const bool shares = models[m].role == ModelRole::kGeneration && policy.has(rank);
      sum += shares ? std::max<std::int64_t>(0, o.bytes - trained.weight_bytes) : o.bytes;
      work = std::max(work, o.work_bytes);
    }
    return sum + work;
  };
  std::int64_t most = policy.end() < ranks ? bytes_of(policy.end()) : 0;
  for (std::size_t m = 0; m < models.size(); ++m)
    most = std::max(most, bytes_of(option(choice, m).layout.first));
  return most;
}

std::vector<ModelLayout> possible_layouts(const DivisorChain& chain,
                                          const std::vector<int>& degrees) {
  std::vector<ModelLayout> list;
  for (auto size = chain.degrees().rbegin(); size != chain.degrees().rend(); ++size)
    for (int first = 0; first < chain.ranks(); first += *size)
      for (const int tp : degrees)
        if (*size % tp == 0 && chain.has(tp)) list.push_back({first, {tp, *size / tp}});
  return list;
}

std::int64_t PlacementCosts::placements(std::int64_t limit) const {
  std::int64_t count = 1;
  for (const PlaceableModel& model : models)
    count = std::min(limit, count * std::ssize(model.options));
  return count;
}

}  // namespace taper
