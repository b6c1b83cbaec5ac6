// SPDX-License-Identifier: Apache-2.0
#include "study/DescribedPlacements.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "optim/ShardedAdamW.hpp"
#include "placement/PlacementSearch.hpp"
#include "pricing/CallPrices.hpp"
#include "study/SimulateJob.hpp"

namespace taper {
namespace {

constexpr double kGradientBytes = 8;  // of a parameter: an exact sum

CallSetting setting_of_calls(const SimulateOptions& o) {
  CallSetting setting;
  setting.pass.max_rows =
      std::max(o.training.micro_batch, o.generation.prompt_tokens + o.generation.max_new_tokens);
  setting.pass.max_sequences = setting.pass.max_rows;
  setting.pass.bundle_tokens = setting.pass.max_rows;
  setting.pass.shares_prefixes = true;
  setting.pass.checkpointing = Checkpointing::kYes;
  return setting;
}

// Of a rank: the inputs of all layers of a micro-batch, gradients, and the rest of what a model
// has.
PlaceOption with_memory(const SimulateOptions& o, const SimulatedSetting& setting, ModelRole role,
                        PlaceOption option) {
  const RankGrid& grid = option.layout.grid;
  const double shard = o.model.parameters() / grid.tp;
  const double inputs = 1.0 * o.training.micro_batch * o.model.hidden * o.model.layers *
                        o.model.weight_bytes / grid.tp;
  double bytes = shard * o.model.weight_bytes, work = 0;
  if (learns(role)) {
    bytes += shard * ShardedAdamW::kParamBytes / grid.dp;
    work = shard * kGradientBytes + inputs;
  } else if (role == ModelRole::kGeneration) {
    const double sequences =
        1.0 * o.generation.prompts_per_rank * o.generation.samples * o.machine.ranks / grid.ranks();
    work = std::min<double>(sequences, setting.slots_per_rank) * setting.peak_positions *
           static_cast<double>(o.model.kv_bytes_per_position());
  }
  option.bytes = static_cast<std::int64_t>(bytes);
  option.weight_bytes = static_cast<std::int64_t>(shard * o.model.weight_bytes);
  option.work_bytes = static_cast<std::int64_t>(work);
  return option;
}

// Of degree 1, so that a strategy says only which ranks they are on: each has the degree that is
// best for it.
ModelSet models_of(const PlacementCosts& costs) {
  ModelSet models;
  for (const PlaceableModel& model : costs.models) {
    models.has_critic = models.has_critic || model.role == ModelRole::kCritic;
    if (model.role == ModelRole::kScoring) models.scoring.push_back({model.name, model.key, ""});
  }
  return models;
}

// The costs with the options only that have the ranks of a strategy.
PlacementCosts limited(const PlacementCosts& costs, PlacementStrategy strategy) {
  PlacementOptions options;
  options.strategy = strategy;
  const ModelSet models = models_of(costs);
  const Placement placement = place(options, models, DivisorChain::of(costs.ranks));
  PlacementCosts some = costs;
  for (PlaceableModel& model : some.models) {
    const RankBlock ranks = layout_of(model, placement, models).ranks();
    std::erase_if(model.options, [&](const PlaceOption& o) { return o.layout.ranks() != ranks; });
  }
  return some;
}

// The best placement; nothing if there is none that fits.
std::vector<FoundPlacement> best_of(const PlacementCosts& costs) {
  for (const PlaceableModel& model : costs.models)
    if (model.options.empty()) return {};
  PlacementSearchOptions options;
  options.top = 1;
  return search_placements(costs, options, {}).list;
}

std::string seconds(const std::vector<FoundPlacement>& best) {
  return best.empty()
             ? format_text(" %12s", "-")
             : format_text(" %12.1f", static_cast<double>(best.front().iteration_ns) * 1e-9);
}

}  // namespace

PlacementCosts price_case(const SimulateOptions& o, const ReplayTrace& trace,
                          const std::vector<int>& degrees) {
  const SimulatedSetting setting = setting_of(o);
  const CallPrices prices(describe_profile(o.machine, o.model, o.switching, degrees,
                                           {trace.work.sequences, o.generation.prompt_tokens +
                                                                      o.generation.max_new_tokens}),
                          {trace}, setting_of_calls(o));
  const DivisorChain chain = DivisorChain::of(o.machine.ranks);
  const UpdateSteps steps{o.training.mini_batches, o.training.epochs};
  PlacementCosts costs;
  costs.ranks = o.machine.ranks;
  costs.memory =
      static_cast<std::int64_t>(o.machine.device.memory_gb * 1e9 * o.machine.device.memory_share);
  const auto add = [&](const std::string& name, ModelRole role, const auto& price) {
    PlaceableModel model{name, name, role, {}};
    for (const ModelLayout& layout : possible_layouts(chain, degrees)) {
      if (role == ModelRole::kGeneration && layout.first > 0) continue;
      PlaceOption option{layout};
      price(option);
      model.options.push_back(with_memory(o, setting, role, option));
    }
    costs.models.push_back(std::move(model));
  };
  for (int m = 0; m < o.training.reward_models; ++m)
    add("reward model " + std::to_string(m + 1), ModelRole::kScoring,
        [&](PlaceOption& p) { p.score_ns = prices.reward_ns(p.layout); });
  if (o.training.reference)
    add("reference", ModelRole::kScoring,
        [&](PlaceOption& p) { p.score_ns = prices.reference_ns(p.layout, steps); });
  if (o.training.critic)
    add("critic", ModelRole::kCritic, [&](PlaceOption& p) {
      p.score_ns = prices.values_ns(p.layout, steps);
      p.update_ns = prices.update_ns(p.layout, steps, CallPrices::LearnsFrom::kValues);
    });
  add("policy", ModelRole::kPolicy, [&](PlaceOption& p) {
    p.update_ns = prices.update_ns(p.layout, steps, CallPrices::LearnsFrom::kLogProbs);
  });
  add("generation", ModelRole::kGeneration,
      [&](PlaceOption& p) { p.score_ns = prices.generation_ns(p.layout.grid, chain); });
  // Ranks that train and generate get what they lack of a smaller degree's shard after each
  // optimizer step. Those that only generate get theirs once: each tensor from one owner per shard
  // to the ranks that hold it, each a part, which they pass on to one another. All of it in f32.
  costs.publish_ns = [o, steps](const ModelLayout& trained,
                                const ModelLayout& used) -> std::int64_t {
    const double bytes = o.model.parameters() * 4, shard = bytes / used.grid.tp;
    const auto node = [&](int rank) { return rank / o.machine.ranks_per_node; };
    const int last = std::max(trained.ranks().end(), used.ranks().end()) - 1;
    const bool is_near = node(std::min(trained.first, used.first)) == node(last);
    const double gb_s = is_near ? o.machine.inside.gb_s : o.machine.between.gb_s;
    double moved = 0;
    if (trained.ranks().overlaps(used.ranks()))
      moved += steps.mini_batches * steps.epochs * std::max(0.0, shard - bytes / trained.grid.tp);
    if (!trained.ranks().contains(used.ranks())) {
      const int receivers =
          used.grid.ranks() - (used.ranks().contains(trained.ranks()) ? trained.grid.ranks() : 0);
      const double copies = std::max(1.0, static_cast<double>(receivers) / used.grid.tp);
      moved += std::max(shard / copies, bytes / trained.grid.tp) + shard * (1 - 1 / copies);
    }
    return static_cast<std::int64_t>(moved / gb_s);
  };
  return costs;
}

double generation_share(const PlacementCosts& costs, double generation_ns) {
  const PlacementCosts flat = limited(costs, PlacementStrategy::kFlattening);
  const std::vector<FoundPlacement> best = best_of(flat);
  TAPER_VALIDATE(!best.empty(),
                 "Machine/Device/Memory GB is too small for the models of Training on all ranks; "
                 "describe more memory, fewer models, or the share of the generation "
                 "(Generation/Share)");
  std::vector<PlayedCall> calls;
  const std::int64_t all = flat.iteration_ns(best.front().choice, &calls);
  const std::int64_t rest = all - (calls.front().end_ns - calls.front().begin_ns);
  return generation_ns / (generation_ns + static_cast<double>(rest));
}

std::string placement_head() {
  return format_text("%-24s %5s %12s %12s %12s %12s %7s %9s  %s\n", "case", "ranks", "flattening",
                     "interleaving", "separation", "best", "gain", "search, s", "best placement");
}

std::string placement_row(const SimulateOptions& o, const std::string& name) {
  const SimulatedSetting setting = setting_of(o);
  const std::vector<int> degrees =
      o.play.degrees.empty() ? possible_degrees(o.machine, o.model) : setting.degrees;
  const PlacementCosts costs = price_case(o, first_trace(o, setting), degrees);
  std::vector<PlaceChoice> starts;
  std::int64_t known = 0;  // the best strategy
  std::string strategies;
  for (const PlacementStrategy strategy :
       {PlacementStrategy::kFlattening, PlacementStrategy::kInterleaving,
        PlacementStrategy::kSeparation}) {
    const PlacementCosts some = limited(costs, strategy);
    const std::vector<FoundPlacement> found = best_of(some);
    strategies += seconds(found);
    if (found.empty()) continue;
    const FoundPlacement& best = found.front();
    if (known == 0 || best.iteration_ns < known) known = best.iteration_ns;
    PlaceChoice& choice = starts.emplace_back();  // in the options of all
    for (std::size_t m = 0; m < costs.models.size(); ++m)
      choice.push_back(*costs.models[m].find(some.option(best.choice, m).layout));
  }
  PlacementSearchOptions options;
  options.top = 1;
  const Timer timer;
  const FoundPlacements found = search_placements(costs, options, starts);
  const double search_s = timer.seconds();
  TAPER_VALIDATE(!found.list.empty(), name << ": no placement of the models fits in memory; "
                                              "describe more of it, or more ranks");
  const FoundPlacement& best = found.list.front();
  std::vector<std::string> parts;
  for (std::size_t m = 0; m < costs.models.size(); ++m)
    parts.push_back(costs.models[m].name + " " + to_string(costs.option(best.choice, m).layout));
  const double gain = static_cast<double>(known) /
                      static_cast<double>(std::max<std::int64_t>(1, best.iteration_ns));
  return format_text("%-24s %5d", name.c_str(), costs.ranks) + strategies + seconds(found.list) +
         (known > 0 ? format_text(" %6.2fx", gain) : format_text(" %7s", "-")) +
         format_text(" %9.2f  ", search_s) + join(parts, ", ") + "\n";
}

}  // namespace taper
