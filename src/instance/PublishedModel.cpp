// SPDX-License-Identifier: Apache-2.0
#include "instance/PublishedModel.hpp"

#include "optim/Ownership.hpp"

namespace taper {
namespace {
constexpr const char* kStagingItem = "publish (staging)";
}  // namespace

PublishedModel::PublishedModel(const ModelFiles& files, const Ranks& ranks,
                               const PublishedModelOptions& options)
    : files_(&files),
      ranks_(&ranks),
      options_(options),
      shard_(files.table, options.used.grid.tp,
             ranks.chain.shard_index(ranks.rank(), options.used.grid.tp)),
      local_(files.table, shard_),
      share_(ranks, files.table, {options.used, options.trained.ranks()}) {}

void PublishedModel::add_memory(MemoryPlan& plan) const {
  if (!is_here()) return;
  PackedModel::add_memory(plan, options_.name, local_, options_.type, WithBackward::kNo,
                          {.share = share_.memory()});
  plan.add(kStagingItem, options_.phase,
           Publisher::staging_floats(local_, share_) * std::int64_t{sizeof(float)},
           Publisher::staging_kind(*ranks_));
}

void PublishedModel::create(Arena& arena, const TrainingModel* trained) {
  float* staging = nullptr;
  if (is_here()) {
    packed_ = std::make_unique<PackedModel>(options_.name, local_, shard_, options_.type,
                                            WithBackward::kNo, arena);
    staging =
        arena.take<float>(kStagingItem, options_.phase, Publisher::staging_floats(local_, share_));
  }
  const ParamTable& table = files_->table;
  publisher_ = std::make_unique<Publisher>(
      *ranks_, table, owned_pieces(table, ranks_->chain, options_.trained), share_, packed_.get(),
      trained == nullptr ? nullptr : &trained->optimizer(), staging);
}

}  // namespace taper
