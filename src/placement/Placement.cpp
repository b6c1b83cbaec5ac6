// SPDX-License-Identifier: Apache-2.0
#include "placement/Placement.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

constexpr const char* kPolicy = "Placement/Policy";
constexpr const char* kGeneration = "Placement/Generation";
constexpr const char* kReference = "Placement/Reference";
constexpr const char* kCritic = "Placement/Critic";

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Which ranks options name. Not of scoring models.
NamedTexts named_texts(const PlacementOptions& o) {
  return {{kPolicy, o.policy}, {kGeneration, o.generation}, {kCritic, o.critic}};
}

// The largest degree of the chain below its last one that divides the ranks into so many blocks at
// least; 1 if there is none.
int block_size(const DivisorChain& chain, int blocks) {
  int size = 1;
  for (const int degree : chain.degrees())
    if (degree < chain.ranks() && chain.ranks() / degree >= blocks) size = degree;
  return size;
}

// The blocks that a strategy gives models whose options name none.
struct Defaults {
  RankBlock policy, generation, critic;
  std::vector<RankBlock> scoring;
};

// Models whose ranks no option names.
int count_free(const std::vector<ScoringModel>& models) {
  return static_cast<int>(std::count_if(models.begin(), models.end(),
                                        [](const ScoringModel& m) { return m.ranks.empty(); }));
}

// Into how many blocks a strategy cuts the ranks; 1: into none.
int parts_of(PlacementStrategy strategy, const ModelSet& models) {
  if (strategy == PlacementStrategy::kSeparation) return 2;
  return strategy == PlacementStrategy::kInterleaving ? std::max(1, count_free(models.scoring)) : 1;
}

// Those whose ranks no option names, dealt to blocks, of which there are as many as such models if
// the ranks can be cut so often.
std::vector<RankBlock> spread(const std::vector<ScoringModel>& models, const DivisorChain& chain) {
  int size = block_size(chain, count_free(models));
  for (const ScoringModel& model : models)
    if (model.ranks.empty()) size = std::max(size, model.tp);
  std::vector<RankBlock> blocks;
  int next = 0;
  for (const ScoringModel& model : models)
    blocks.push_back({(model.ranks.empty() ? next++ : 0) % (chain.ranks() / size) * size, size});
  return blocks;
}

Defaults defaults_of(PlacementStrategy strategy, const ModelSet& models,
                     const DivisorChain& chain) {
  const RankBlock all{0, chain.ranks()};
  Defaults d{all, all, all, std::vector<RankBlock>(models.scoring.size(), all)};
  if (chain.ranks() == 1) return d;
  if (strategy == PlacementStrategy::kInterleaving && parts_of(strategy, models) > 1) {
    d.scoring = spread(models.scoring, chain);
  } else if (strategy == PlacementStrategy::kSeparation) {
    const int size = block_size(chain, 2);
    d.policy = d.critic = {all.end() - size, size};
    d.generation = {0, size};
    d.scoring.assign(models.scoring.size(), d.generation);
  }
  return d;
}

ModelLayout layout_of(const std::string& option, const std::string& text, RankBlock block, int tp,
                      const DivisorChain& chain) {
  if (!text.empty()) {
    const auto named = find_model_ranks(text);
    TAPER_VALIDATE(named, option << " is '" << text << "' (expected: " << kModelRanksForm << ")");
    const std::string problem = block_problem(named->ranks, chain);
    TAPER_VALIDATE(problem.empty(), option << " is " << text << " " << problem);
    block = named->ranks;
    if (named->grid) tp = named->grid->tp;
  }
  TAPER_VALIDATE(block.count % tp == 0, option << " is " << to_string(block) << " ("
                                               << count_text(block.count, "rank")
                                               << ", too few for a model of tensor-parallel degree "
                                               << tp << "); name more ranks, or lower the degree");
  return {block.first, {tp, block.count / tp}};
}

}  // namespace

std::vector<std::pair<std::string, PlacementStrategy>> named_placement_strategies() {
  return {{"flattening", PlacementStrategy::kFlattening},
          {"interleaving", PlacementStrategy::kInterleaving},
          {"separation", PlacementStrategy::kSeparation},
          {"plan", PlacementStrategy::kPlan}};
}

std::vector<std::string> PlacementOptions::problems() const {
  std::vector<std::string> list;
  if (strategy == PlacementStrategy::kPlan && file.empty())
    list.push_back(
        "Placement/Strategy is plan, but Placement/File names none; make one with taper plan");
  if (strategy != PlacementStrategy::kPlan && !file.empty())
    list.push_back("Placement/File is " + file +
                   ", but Placement/Strategy is not plan (the file would not count); set the "
                   "strategy to plan, or leave the file out");
  NamedTexts texts = named_texts(*this);
  texts.emplace_back(kReference, reference);
  for (const auto& [option, text] : texts)
    if (!text.empty() && !find_model_ranks(text))
      list.push_back(option + " is '" + text + "' (expected: " + kModelRanksForm + ")");
  return list;
}

std::vector<std::string> ModelSet::names() const {
  std::vector<std::string> list{"policy"};
  if (has_critic) list.emplace_back("critic");
  for (const ScoringModel& model : scoring) list.push_back(model.name);
  return list;
}

bool Placement::is_flat(int ranks) const {
  return block_sizes(ranks).empty();
}

std::vector<int> Placement::idle_ranks(int ranks) const {
  std::vector<int> idle;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto has = [&](const ModelLayout& model) { return model.ranks().has(rank); };
    if (!has(policy) && !has(generation) && !(critic && has(*critic)) &&
        std::none_of(scoring.begin(), scoring.end(), has))
      idle.push_back(rank);
  }
  return idle;
}

std::vector<int> Placement::block_sizes(int ranks) const {
  std::set<int> sizes{policy.grid.ranks(), generation.grid.ranks()};
  if (critic) sizes.insert(critic->grid.ranks());
  for (const ModelLayout& model : scoring) sizes.insert(model.grid.ranks());
  sizes.erase(ranks);
  return {sizes.begin(), sizes.end()};
}

std::vector<std::pair<std::string, int>> named_degrees(const PlacementOptions& options,
                                                       const ModelSet& models, int ranks) {
  NamedTexts texts = named_texts(options);
  for (const ScoringModel& model : models.scoring) texts.emplace_back(model.option, model.ranks);
  std::vector<std::pair<std::string, int>> degrees;
  for (const auto& [option, text] : texts) {
    const auto named = find_model_ranks(text);
    if (!named) continue;
    degrees.emplace_back(option + " (ranks)", named->ranks.count);
    if (named->grid) degrees.emplace_back(option + " (tensor parallel)", named->grid->tp);
  }
  const int parts = parts_of(options.strategy, models), size = ranks / parts;
  std::vector<int> others{models.policy_tp, models.generation_tp, models.critic_tp};
  for (const ScoringModel& model : models.scoring) others.push_back(model.tp);
  for (const auto& [option, degree] : degrees) others.push_back(degree);
  const bool goes = std::all_of(others.begin(), others.end(), [&](int degree) {
    return size % degree == 0 || degree % size == 0;
  });
  if (parts > 1 && ranks % parts == 0 && goes)
    degrees.emplace_back("Placement/Strategy (ranks of a block)", size);
  return degrees;
}

Placement place(const PlacementOptions& options, const ModelSet& models,
                const DivisorChain& chain) {
  const Defaults d = defaults_of(options.strategy, models, chain);
  Placement p;
  p.policy = layout_of(kPolicy, options.policy, d.policy, models.policy_tp, chain);
  p.generation =
      layout_of(kGeneration, options.generation, d.generation, models.generation_tp, chain);
  TAPER_VALIDATE(p.generation.first == 0,
                 kGeneration << " is " << options.generation
                             << " (rank 0, which writes the results, must generate); let it begin "
                                "at rank 0");
  if (models.has_critic)
    p.critic = layout_of(kCritic, options.critic, d.critic, models.critic_tp, chain);
  for (std::size_t m = 0; m < models.scoring.size(); ++m) {
    const ScoringModel& model = models.scoring[m];
    p.scoring.push_back(layout_of(model.option, model.ranks, d.scoring[m], model.tp, chain));
  }
  return p;
}

std::string describe(const Placement& placement, const ModelSet& models) {
  std::ostringstream text;
  const auto add = [&](const std::string& name, const ModelLayout& layout) {
    if (text.tellp() > 0) text << ", ";
    text << name << " on " << (layout.grid.ranks() == 1 ? "rank " : "ranks ")
         << to_string(layout.ranks()) << " (TPxDP " << to_string(layout.grid) << ")";
  };
  add("policy", placement.policy);
  add("generation", placement.generation);
  if (placement.critic) add("critic", *placement.critic);
  for (std::size_t m = 0; m < placement.scoring.size(); ++m)
    add(models.scoring[m].name, placement.scoring[m]);
  return text.str();
}

}  // namespace taper
