// SPDX-License-Identifier: Apache-2.0
#include "pricing/RunPrices.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "data/PromptSource.hpp"
#include "model/PackedModel.hpp"
#include "model/TrainPass.hpp"
#include "optim/Ownership.hpp"
#include "optim/ShardedAdamW.hpp"
#include "pricing/CallPrices.hpp"
#include "profile/RunIdentity.hpp"
#include "simulate/LengthLaw.hpp"

namespace taper {
namespace {

constexpr std::int64_t kBytesPerToken = 16;  // of a sample that is copied: ids, log-probs, ...

bool has_shape(const Facts& model, const Facts& shape) {
  return std::all_of(shape.begin(), shape.end(), [&](const auto& fact) {
    const auto at = model.find(fact.first);
    return at != model.end() && at->second == fact.second;
  });
}

// The profile that is of a model with the shape of `config`. Throws Error naming the model if there
// is none.
std::size_t index_of_profile(const std::vector<const LatencyProfile*>& profiles,
                             const std::string& name, const ModelConfig& config) {
  const Facts shape = shape_facts(config);
  const auto at = std::find_if(profiles.begin(), profiles.end(), [&](const LatencyProfile* p) {
    return has_shape(p->identity.model, shape);
  });
  TAPER_VALIDATE(at != profiles.end(), "no --profile is of a model with the shape of the "
                                           << name << " (" << config.layers
                                           << " layers, hidden size " << config.hidden
                                           << "); measure one: taper profile --passes --model DIR");
  return static_cast<std::size_t>(at - profiles.begin());
}

Ownership united(const Ownership& a, const Ownership& b) {
  Ownership all(a.size());
  for (std::size_t piece = 0; piece < a.size(); ++piece)
    std::set_union(a[piece].begin(), a[piece].end(), b[piece].begin(), b[piece].end(),
                   std::back_inserter(all[piece]));
  return all;
}

// What ranks of the block hold.
Ownership within(const RankBlock& block, Ownership pieces) {
  for (auto& ranks : pieces) std::erase_if(ranks, [&](int rank) { return !block.has(rank); });
  return pieces;
}

// Prices of one run. Models of one shape share a profile.
class RunPrices {
 public:
  RunPrices(const RunOptions& run, const DivisorChain& chain,
            const std::vector<LatencyProfile>& profiles, const std::vector<ReplayTrace>& traces)
      : run_(run),
        chain_(chain),
        pass_(run.pass_options()),
        policy_files_(run.model.directory, "Model/Directory") {
    const CallSetting setting{pass_, run.rollout.mode == PlannerMode::kAdaptive, run.seed,
                              run.rollout.max_running};
    for (const LatencyProfile& profile : profiles)
      prices_.push_back(std::make_unique<CallPrices>(profile, traces, setting));
  }

  PlacementCosts costs() const {
    PlacementCosts costs;
    costs.ranks = chain_.ranks();
    const ModelSet set = run_.models();
    auto scoring = set.scoring.begin();
    std::optional<PlaceableModel> first;
    if (run_.has_reference()) first = reference(*scoring++);
    // Reward models come first, as in runs.
    for (const RewardOptions& reward : run_.judged_by())
      if (reward.kind == RewardKind::kModel)
        costs.models.push_back(reward_model(*scoring++, reward.model.directory));
    if (first) costs.models.push_back(std::move(*first));
    if (run_.has_critic()) costs.models.push_back(critic());
    costs.models.push_back(policy());
    costs.models.push_back(generation());
    for (const PlaceableModel& model : costs.models)
      TAPER_VALIDATE(!model.options.empty(),
                     "the " << model.name << " can be on no block of " << chain_.ranks()
                            << " ranks (divisor chain " << join(chain_.degrees(), ",")
                            << ") at a tensor-parallel degree that its profile has; measure one "
                               "with taper profile --passes on as many ranks");
    for (PlaceableModel& model : costs.models) model.works_early = works_early(model.role);
    const MoveCost link = slowest_link();
    const std::int64_t bytes = kBytesPerToken * prices_.front()->tokens();
    costs.exchange_ns = 2 * (link.latency_ns * chain_.ranks() + bytes * link.ps_per_byte / 1000);
    return costs;
  }

  // What bringing the generation its weights adds to optimizer steps, which were measured with
  // weights of the degree of training: ranks that train bring smaller degrees' once a step, other
  // ranks get theirs once.
  std::int64_t publish_ns(const ModelLayout& trained, const ModelLayout& used) const {
    const auto key = std::pair(to_string(trained), to_string(used));
    if (const auto known = published_.find(key); known != published_.end()) return known->second;
    const ParamTable& table = policy_files_.table;
    const Ownership owners = owned_pieces(table, chain_, trained);
    std::int64_t ns = 0;
    if (used.grid.tp < trained.grid.tp && trained.ranks().overlaps(used.ranks())) {
      const Ownership own = held_pieces(table, chain_, trained);
      const Ownership both = united(own, within(trained.ranks(), held_pieces(table, chain_, used)));
      ns += run_.training.mini_batches * run_.training.epochs *
            (bring_ns(owners, both) - bring_ns(owners, own));
    }
    if (!trained.ranks().contains(used.ranks()))
      ns += bring_ns(owners, held_pieces(table, chain_, used, trained.ranks()));
    return published_[key] = ns;
  }

 private:
  // Needed minus held, as Publisher brings it: tensor by tensor, and the rank that sends or
  // receives most determines how long a step takes.
  std::int64_t bring_ns(const Ownership& owners, const Ownership& holders) const {
    const ParamTable& table = policy_files_.table;
    const std::vector<std::int64_t> bytes = table.piece_bytes();
    const MoveCost link = slowest_link();
    std::int64_t ns = 0;
    for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t) {
      const int first = table.first_piece(t);
      const RelayedMoves moves =
          plan_relayed_moves(owners, holders, bytes, {first, first + table.tensors()[t].units});
      for (const auto* step : {&moves.scatter, &moves.gather})
        if (!step->empty())
          ns += link.latency_ns + most_bytes(*step, bytes) * link.ps_per_byte / 1000;
    }
    return ns;
  }

  const CallPrices& prices_of(const std::string& name, const ModelConfig& config) const {
    std::vector<const LatencyProfile*> profiles;
    for (const auto& prices : prices_) profiles.push_back(&prices->profile());
    return *prices_[index_of_profile(profiles, name, config)];
  }

  std::vector<ModelLayout> layouts(std::vector<int> degrees, const ModelFiles& files) const {
    std::erase_if(degrees, [&](int tp) { return tp > largest_degree(files.table); });
    return possible_layouts(chain_, degrees);
  }

  bool works_early(ModelRole role) const {
    if (role == ModelRole::kPolicy) return run_.training.early_learning;
    return role != ModelRole::kGeneration && run_.training.scores_early();
  }

  // Whether policy and generation must be on all ranks.
  bool is_bound() const {
    return run_.rollout.speculation.trains_draft() || run_.rollout.rounds.is_priced();
  }
  // Whether the generation must: its profile is of all ranks.
  bool is_generation_bound() const { return is_bound() || run_.rollout.may_change_layout(); }

  PlaceableModel reward_model(const ScoringModel& named, const std::string& directory) const {
    const ModelFiles files(directory, named.option, {OutputHead::kScalar});
    const CallPrices& prices = prices_of(named.name, files.config);
    PlaceableModel model{named.name, named.option, ModelRole::kScoring, {}};
    for (const ModelLayout& layout : layouts(prices.degrees(), files))
      model.options.push_back({layout, prices.reward_ns(layout), 0,
                               weight_bytes(files, layout.grid.tp, WithBackward::kNo),
                               pass_bytes(files, layout.grid.tp, scoring_pass())});
    return model;
  }

  PlaceableModel reference(const ScoringModel& named) const {
    const CallPrices& prices = prices_of(named.name, policy_files_.config);
    PlaceableModel model{named.name, named.option, ModelRole::kScoring, {}};
    const UpdateSteps steps{run_.training.mini_batches, run_.training.epochs};
    for (const ModelLayout& layout : layouts(prices.degrees(), policy_files_)) {
      PlaceOption& option = model.options.emplace_back(
          PlaceOption{layout, prices.reference_ns(layout, steps), 0,
                      weight_bytes(policy_files_, layout.grid.tp, WithBackward::kNo),
                      pass_bytes(policy_files_, layout.grid.tp, scoring_pass())});
      if (run_.training.offload_reference) option.work_bytes += std::exchange(option.bytes, 0);
    }
    return model;
  }

  PlaceableModel critic() const {
    const CriticOptions o = run_.critic_in_use();
    const ModelFiles files(o.directory, "Critic/Model Directory", {OutputHead::kScalar});
    const CallPrices& prices = prices_of("critic", files.config);
    const UpdateSteps steps{o.mini_batches, o.epochs};
    PlaceableModel model{"critic", "Placement/Critic", ModelRole::kCritic, {}};
    for (const ModelLayout& layout : layouts(prices.degrees(), files)) {
      PlaceOption option = learner(files, layout);
      option.score_ns = prices.values_ns(layout, steps);
      option.update_ns = prices.update_ns(layout, steps, CallPrices::LearnsFrom::kValues);
      model.options.push_back(option);
    }
    return model;
  }

  PlaceableModel policy() const {
    const CallPrices& prices = prices_of("policy", policy_files_.config);
    const UpdateSteps steps{run_.training.mini_batches, run_.training.epochs};
    PlaceableModel model{"policy", "Placement/Policy", ModelRole::kPolicy, {}};
    for (const ModelLayout& layout : layouts(prices.degrees(), policy_files_)) {
      if (is_bound() && !layout.is_on_all(chain_.ranks())) continue;
      PlaceOption option = learner(policy_files_, layout);
      option.update_ns = prices.update_ns(layout, steps, CallPrices::LearnsFrom::kLogProbs);
      model.options.push_back(option);
    }
    return model;
  }

  // On the first ranks: rank 0 writes the results.
  PlaceableModel generation() const {
    const CallPrices& prices = prices_of("policy", policy_files_.config);
    const double wanted = 1.0 * run_.rollout.max_running * run_.rollout.max_positions() *
                          static_cast<double>(prices.profile().kv_bytes_per_position);
    PlaceableModel model{"generation", "Placement/Generation", ModelRole::kGeneration, {}};
    for (const ModelLayout& layout : layouts(prices.profile().degrees(), policy_files_)) {
      if (layout.first > 0 || (is_generation_bound() && !layout.is_on_all(chain_.ranks())))
        continue;
      const double cache = std::min(wanted / layout.grid.tp, run_.rollout.kv_memory_mb * (1 << 20));
      model.options.push_back({layout, prices.generation_ns(layout.grid, chain_), 0,
                               weight_bytes(policy_files_, layout.grid.tp, WithBackward::kNo),
                               static_cast<std::int64_t>(cache)});
    }
    return model;
  }

  std::int64_t weight_bytes(const ModelFiles& files, int tp, WithBackward backward) const {
    MemoryPlan plan;
    const LocalParams local(files.table, ModelShard(files.table, tp, tp - 1));
    PackedModel::add_memory(plan, "model", local, run_.model.type, backward);
    return plan.total();
  }

  // Without a backward pass only the inputs of layers are kept at once.
  TrainPassOptions scoring_pass() const {
    TrainPassOptions pass = pass_;
    pass.checkpointing = Checkpointing::kYes;
    return pass;
  }

  // As of one rank: what a tensor-parallel group has of it is nearly shared out.
  static std::int64_t pass_bytes(const ModelFiles& files, int tp, TrainPassOptions pass) {
    MemoryPlan plan;
    const Group alone = Group::self();
    pass.owner.phase = plan.phase("passes");
    TrainPass::add_memory(plan, files.table,
                          ModelParallel(files.table, alone, pass.precision.arithmetic), pass);
    return plan.total() / tp;
  }

  PlaceOption learner(const ModelFiles& files, const ModelLayout& layout) const {
    const int tp = layout.grid.tp;
    const LocalParams local(files.table, ModelShard(files.table, tp, tp - 1));
    PlaceOption option{layout};
    option.bytes = weight_bytes(files, tp, WithBackward::kYes) +
                   local.size() * ShardedAdamW::kParamBytes / layout.grid.dp;
    option.weight_bytes = weight_bytes(files, tp, WithBackward::kNo);
    option.work_bytes = local.size() * bytes_of(pass_.gradients) + pass_bytes(files, tp, pass_);
    return option;
  }

  MoveCost slowest_link() const {
    MoveCost cost;
    for (const auto& prices : prices_)
      for (const MoveCost& move : prices->profile().moves)
        if (move.ps_per_byte > cost.ps_per_byte) cost = move;
    return cost;
  }

  RunOptions run_;
  DivisorChain chain_;
  TrainPassOptions pass_;
  ModelFiles policy_files_;
  std::vector<std::unique_ptr<CallPrices>> prices_;  // by profile
  mutable std::map<std::pair<std::string, std::string>, std::int64_t> published_;
};

LengthLaw law_of(const RolloutOptions& rollout) {
  const auto law = length_law(rollout.lengths);
  TAPER_VALIDATE(law || rollout.lengths.empty(),
                 "Rollout/Lengths is " << rollout.lengths
                                       << " (no law of lengths); name the run whose lengths count "
                                          "with --lengths");
  return law.value_or(LengthLaw::kLogNormal);
}

}  // namespace

const LatencyProfile& profile_of_policy(const RunOptions& run,
                                        const std::vector<LatencyProfile>& profiles) {
  std::vector<const LatencyProfile*> list;
  for (const LatencyProfile& profile : profiles) list.push_back(&profile);
  const ModelFiles policy(run.model.directory, "Model/Directory");
  return profiles[index_of_profile(list, "policy", policy.config)];
}

std::vector<ReplayTrace> expected_generations(const RunOptions& run, const ModelFiles& policy,
                                              int iterations) {
  const RolloutOptions& o = run.rollout;
  const PromptSource prompts(run.data, policy, o.max_prompt_tokens, run.seed);
  const LengthLaw law = law_of(o);
  std::vector<ReplayTrace> traces;
  for (std::int64_t i = 0; i < iterations; ++i) {
    std::vector<std::int64_t> numbers(o.prompts);
    std::iota(numbers.begin(), numbers.end(), i * o.prompts);
    ReplayTrace trace;
    trace.work.iteration = i + 1;
    trace.work.sequences = o.prompts * o.samples;
    trace.work.samples = o.samples;
    trace.work.max_new_tokens = o.max_new_tokens;
    trace.work.slots_per_rank = o.max_running;
    trace.work.step_rows = o.step_rows;
    const std::vector<int> lengths =
        draw_lengths(law, run.seed, i + 1, trace.work.sequences, o.max_new_tokens);
    for (const Prompt& prompt : prompts.training(numbers))
      for (int s = 0; s < o.samples; ++s) {
        const auto row = std::ssize(trace.outcomes);
        const auto length = static_cast<std::int32_t>(prompt.tokens.size());
        trace.outcomes.push_back({row, length, lengths[row], false});
        trace.work.prompt_tokens += length;
      }
    traces.push_back(std::move(trace));
  }
  return traces;
}

PlacementCosts price_run(const RunOptions& run, const DivisorChain& chain,
                         const std::vector<LatencyProfile>& profiles,
                         const std::vector<ReplayTrace>& traces) {
  TAPER_EXPECT(!traces.empty());
  const auto prices = std::make_shared<RunPrices>(run, chain, profiles, traces);
  PlacementCosts costs = prices->costs();
  costs.publish_ns = [prices](const ModelLayout& trained, const ModelLayout& used) {
    return prices->publish_ns(trained, used);
  };
  return costs;
}

}  // namespace taper
