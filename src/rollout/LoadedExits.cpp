// SPDX-License-Identifier: Apache-2.0
#include "rollout/LoadedExits.hpp"

#include "base/Error.hpp"

namespace taper {
namespace {

constexpr const char* kItem = "early exits (streams and logits)";

}  // namespace

LoadedExits::LoadedExits(const GeneratorOptions& options, const ModelFiles& policy,
                         const RolloutLayouts& layouts, const Ranks& ranks)
    : files_(options.speculation.early_exits, options.names.early_exits, policy),
      ranks_(ranks),
      is_trained_(options.speculation.trains_draft()),
      step_rows_(layouts.memory().step_rows),
      logit_rows_(layouts.smallest().options.logit_rows) {
  for (const ModelFiles& head : files_.heads()) {
    parallels_.emplace_back(head.table, ranks.groups.tp_group(1), ranks.exec.arithmetic);
    if (!is_trained_) weights_.emplace_back("early exits", head, ranks, 1);
  }
}

std::int64_t LoadedExits::floats() const {
  return EarlyExits::floats(files_.heads().front().table, parallels_.front(), step_rows_,
                            logit_rows_);
}

void LoadedExits::add_memory(MemoryPlan& plan, WeightType type, MemoryPhase phase) const {
  for (const InferenceModel& head : weights_) head.add_memory(plan, type);
  plan.add(kItem, phase, floats() * std::int64_t{sizeof(float)});
}

GuessModel& LoadedExits::load(WeightType type, Arena& arena, MemoryPhase phase,
                              std::span<const PackedModel* const> trained, Engine& engine) {
  TAPER_EXPECT(is_trained_ == !trained.empty());
  std::vector<const PackedModel*> packed(trained.begin(), trained.end());
  for (InferenceModel& head : weights_) {
    head.load(type, arena);
    packed.push_back(&head.packed());
  }
  std::vector<ExitHead> heads;
  auto parallel = parallels_.begin();
  for (std::size_t i = 0; i < packed.size(); ++i, ++parallel)
    heads.push_back({files_.layers()[i], &views_.emplace_back(*packed[i], parallel->shard()),
                     &*parallel, files_.ids()});
  return engine.set_exits(heads, arena.take<float>(kItem, phase, floats()));
}

}  // namespace taper
