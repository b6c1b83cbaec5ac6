// SPDX-License-Identifier: Apache-2.0
#include "rollout/LoadedDraftModel.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "instance/SameTokenizer.hpp"

namespace taper {
namespace {

constexpr const char* kWindowItem = "windows of the draft model";

}  // namespace

LoadedDraftModel::LoadedDraftModel(const GeneratorOptions& options, const ModelFiles& policy,
                                   const RolloutLayouts& layouts, const Ranks& ranks)
    : files_(options.speculation.draft_model, options.names.draft_model),
      ranks_(ranks),
      placement_(options.speculation.draft_placement) {
  if (!options.speculation.trains_draft()) weights_.emplace("draft model", files_, ranks, 1);
  require_same_tokenizer(policy, files_, ranks, options.names.draft_model,
                         "name a model with the same tokens, or none");
  files_.require_context(options.max_positions(), "the length limits, or name no draft model");
  const std::int64_t kv_layer = largest_cache(layouts);
  for (const int tp : layouts.degrees()) {
    const int degree = degree_in(tp), most = largest_degree(files_.table);
    TAPER_VALIDATE(degree <= most, options.names.draft_placement
                                       << " is tensor (" << options.names.draft_model << " "
                                       << path_text(files_.directory) << " can be shared out over "
                                       << most << " ranks, a replica may have " << tp
                                       << "); choose sequence");
    if (!layouts_.contains(degree)) add_layout(degree, layouts.at(tp).options, kv_layer);
    if (placement_ != DraftPlacement::kLayer || tp == 1) continue;
    const Group& group = ranks.groups.tp_group(tp);
    windows_.emplace(tp, LayerWindows(group, files_.config.layers));
    window_floats_ = std::max(window_floats_,
                              LayerWindows::floats(group, files_.config.hidden, memory_.step_rows));
  }
}

// Floats of a layer on a rank. All positions that a replica may have fit on its ranks together; the
// `layer` placement has each position on all of them, so only a part of the sequences gets drafts
// while a cache is full.
std::int64_t LoadedDraftModel::largest_cache(const RolloutLayouts& layouts) const {
  std::int64_t largest = 0;
  for (const int tp : layouts.degrees()) {
    const EngineOptions& options = layouts.at(tp).options;
    const int degree = degree_in(tp), sharing = tp / degree;
    const std::int64_t blocks = (options.kv_blocks + sharing - 1) / sharing;
    if (degree <= largest_degree(files_.table))
      largest =
          std::max(largest, blocks * largest_block(files_, degree, options.precision.kv_type));
  }
  return largest;
}

void LoadedDraftModel::add_layout(int degree, const EngineOptions& options, std::int64_t kv_layer) {
  const ModelParallel& parallel =
      parallels_
          .emplace(degree, ModelParallel(files_.table, ranks_.groups.tp_group(degree),
                                         options.precision.arithmetic))
          .first->second;
  EngineSetup& layout = layouts_[degree];
  layout = {nullptr, &parallel, options};
  layout.options.kv_blocks =
      static_cast<int>(kv_layer / largest_block(files_, degree, options.precision.kv_type));
  memory_.cover(EngineMemory::of(files_.table, parallel, layout.options));
}

void LoadedDraftModel::add_memory(MemoryPlan& plan, WeightType type, MemoryPhase phase) const {
  if (weights_) weights_->add_memory(plan, type);
  memory_.add_memory(plan, phase);
  if (window_floats_ > 0)
    plan.add(kWindowItem, phase, window_floats_ * std::int64_t{sizeof(float)});
}

void LoadedDraftModel::load(WeightType type, Arena& arena, MemoryPhase phase,
                            const PackedModel* trained) {
  TAPER_EXPECT(weights_.has_value() == (trained == nullptr));
  if (weights_) weights_->load(type, arena);
  const PackedModel& packed = weights_ ? weights_->packed() : *trained;
  for (auto& [tp, layout] : layouts_)
    layout.view = &views_.emplace(tp, ModelView(packed, parallels_.at(tp).shard())).first->second;
  const EngineSetup& first = layouts_.begin()->second;
  model_ = std::make_unique<DraftModel>(
      ranks_.exec, first, memory_, arena, phase, files_.rope_table(first.options.max_positions),
      window_floats_ > 0 ? arena.take<float>(kWindowItem, phase, window_floats_) : nullptr);
}

void LoadedDraftModel::bind(int tp) {
  const auto windows = windows_.find(tp);
  model_->rebind(layouts_.at(degree_in(tp)),
                 windows == windows_.end() ? nullptr : &windows->second);
}

}  // namespace taper
