// SPDX-License-Identifier: Apache-2.0
#include "rollout/RolloutLayouts.hpp"

#include <algorithm>

#include "base/Error.hpp"

namespace taper {
namespace {

// Whether every shard of degree tp lies inside one of the smallest degree: not if heads are cut
// below a KV head.
bool nests(const ParamTable& table, int smallest, int tp) {
  return smallest == 1 || tp <= table.config().kv_heads;
}

void make_unique(std::vector<int>& degrees) {
  std::sort(degrees.begin(), degrees.end());
  degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
}

// Ascending; the first is that of the weights.
std::vector<int> possible_degrees(const GeneratorOptions& options, const ParamTable& table,
                                  const DivisorChain& chain) {
  std::vector<int> degrees = degrees_of_layout(options.names.layout, options.layout);
  // The degree that is asked for stays, fit or not: ModelShard says what is wrong with it.
  if (options.may_change_layout() || degrees.empty()) degrees.push_back(options.tp);
  if (options.may_change_layout())
    for (const int tp : chain.degrees())
      if (tp % options.tp == 0 && tp <= largest_degree(table)) degrees.push_back(tp);
  make_unique(degrees);
  const int smallest = degrees.front();
  std::erase_if(degrees, [&](int tp) { return tp != smallest && !nests(table, smallest, tp); });
  return degrees;
}

}  // namespace

std::vector<int> degrees_of_layout(const std::string& option, const std::string& text) {
  if (text.empty()) return {};
  std::vector<int> degrees = group_degrees(text).value_or(std::vector<int>{});
  TAPER_VALIDATE(!degrees.empty(),
                 option << " is '" << text << "' (expected: " << layout_forms() << ")");
  make_unique(degrees);
  return degrees;
}

std::int64_t largest_block(const ModelFiles& files, int tp, KvType type) {
  int heads = 0;
  for (int i = 0; i < tp; ++i)
    heads = std::max(heads, ModelShard(files.table, tp, i).kv_heads().size());
  return BlockShape{1, heads, files.config.head_dim, type}.layer_floats();
}

RolloutLayouts::RolloutLayouts(const GeneratorOptions& options, const ModelFiles& files,
                               const Ranks& ranks) {
  const EngineNeed need{options.max_positions(), files.valid_ids(), options.names.kv_memory,
                        precision(ranks.exec)};
  for (const int tp : possible_degrees(options, files.table, ranks.chain)) {
    const auto [at, unused] = parallels_.emplace(
        tp, ModelParallel(files.table, ranks.groups.tp_group(tp), need.precision.arithmetic));
    layouts_[tp] = {nullptr, &at->second, engine_options(options, need, files.config, at->second)};
  }
  TAPER_INSIST(!layouts_.empty(), "no tensor-parallel degree is left to generate in");
  if (!options.layout.empty()) {
    const Layout first = parse_layout(options.layout, ranks.chain);
    for (const LayoutGroup& group : first.groups())
      TAPER_VALIDATE(layouts_.contains(group.tp),
                     options.names.layout
                         << " " << options.layout << " has a group of " << group.tp
                         << " ranks, which would split a KV head (the model has "
                         << files.config.kv_heads << "; a larger degree is possible only if the "
                         << "smallest degree is 1, here it is " << layouts_.begin()->first
                         << "); choose another layout "
                            "(doc/planner.md#which-layouts-are-possible)");
  }
  if (options.may_change_layout()) share_memory(files);
  for (const auto& [tp, layout] : layouts_)
    memory_.cover(EngineMemory::of(files.table, *layout.parallel, layout.options));
}

// A group can take over the sequences of all replicas of the smallest degree that it may be made
// of: in flight are as many per rank in every layout, and keys and values stay within the memory
// that the smallest degree needs anyway.
void RolloutLayouts::share_memory(const ModelFiles& files) {
  const KvType type = smallest().options.precision.kv_type;
  const std::int64_t kv_layer =
      smallest().options.kv_blocks * largest_block(files, smallest_degree(), type);
  for (auto& [tp, layout] : layouts_) {
    SchedulerOptions& scheduler = layout.options.scheduler;
    scheduler.max_running *= tp / smallest_degree();
    scheduler.max_step_rows = std::max(scheduler.max_step_rows, scheduler.max_running);
    layout.options.kv_blocks = static_cast<int>(kv_layer / largest_block(files, tp, type));
  }
}

std::vector<int> RolloutLayouts::degrees() const {
  std::vector<int> list;
  for (const auto& [tp, layout] : layouts_) list.push_back(tp);
  return list;
}

void RolloutLayouts::set_weights(const PackedModel& packed) {
  for (auto& [tp, layout] : layouts_)
    layout.view = &views_.emplace(tp, ModelView(packed, parallels_.at(tp).shard())).first->second;
}

}  // namespace taper
