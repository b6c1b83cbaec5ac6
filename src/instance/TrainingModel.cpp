// SPDX-License-Identifier: Apache-2.0
#include "instance/TrainingModel.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "model/RandomWeights.hpp"
#include "optim/Ownership.hpp"
#include "rl/UpdateLoop.hpp"
#include "session/RankBlocks.hpp"

namespace taper {
namespace {
constexpr const char* kGradientItem = "gradients";
constexpr const char* kStagingItem = "publish (staging)";
}  // namespace

int TrainingModel::packed_tp() const {
  return std::min(options_.train_tp, options_.generation_tp);
}

TrainingModel::TrainingModel(const ModelFiles& files, const Ranks& ranks,
                             const TrainingModelOptions& options)
    : files_(&files),
      ranks_(&ranks),
      options_(options),
      dp_group_(&ranks.groups.dp_group(options.train_tp)),
      train_parallel_(files.table, ranks.groups.tp_group(options.train_tp), ranks.exec.arithmetic),
      packed_shard_(files.table, packed_tp(), ranks.chain.shard_index(ranks.rank(), packed_tp())),
      train_local_(files.table, train_parallel_.shard()),
      packed_local_(files.table, packed_shard_),
      share_(ranks, files.table, {place_on_all(ranks, packed_tp()).layout}, masters()) {
  options_.adamw.gradients = options.pass.gradients;
}

Ownership TrainingModel::masters() const {
  return owned_pieces(files_->table, ranks_->chain, {0, layout()});
}

void TrainingModel::add_memory(MemoryPlan& plan) const {
  PackedModel::add_memory(plan, options_.name, packed_local_, options_.type, with_backward(),
                          {.share = share_.memory()});
  const MemoryOwner& owner = options_.pass.owner;
  ShardedAdamW::add_memory(plan, train_local_, *dp_group_, options_.adamw, owner);
  plan.add(owner.item(kGradientItem), owner.phase,
           train_local_.size() * bytes_of(options_.adamw.gradients));
  plan.add(owner.item(kStagingItem), owner.phase,
           Publisher::staging_floats(packed_local_, share_) * std::int64_t{sizeof(float)},
           Publisher::staging_kind(*ranks_));
  if (has_pass()) TrainPass::add_memory(plan, files_->table, train_parallel_, options_.pass);
}

void TrainingModel::create(Arena& arena, ConstFloatMatrix rope_table) {
  packed_ = std::make_unique<PackedModel>(options_.name, packed_local_, packed_shard_,
                                          options_.type, with_backward(), arena);
  const MemoryOwner& owner = options_.pass.owner;
  train_view_ = std::make_unique<ModelView>(*packed_, train_parallel_.shard());
  if (has_pass())
    pass_ = std::make_unique<TrainPass>(files_->table, train_parallel_, options_.pass, arena,
                                        rope_table);
  const GradientType type = options_.adamw.gradients;
  gradients_ = std::make_unique<Gradients>(
      train_local_, type,
      arena.take(owner.item(kGradientItem), owner.phase, train_local_.size() * bytes_of(type)));
  optimizer_ = std::make_unique<ShardedAdamW>(train_local_, train_parallel_.group(), *dp_group_,
                                              options_.adamw, arena, owner);
  float* staging = arena.take<float>(owner.item(kStagingItem), owner.phase,
                                     Publisher::staging_floats(packed_local_, share_));
  const ParamTable& table = files_->table;
  publisher_ = std::make_unique<Publisher>(*ranks_, table, masters(), share_, packed_.get(),
                                           optimizer_.get(), staging);
}

void TrainingModel::set_masters(const PieceSource& source) {
  std::vector<float> values;
  for (const auto& piece : optimizer_->owned()) {
    values.resize(static_cast<std::size_t>(piece.size));
    source(piece.id, values);
    optimizer_->set_master(ranks_->exec, piece, values);
  }
  publish();
}

void TrainingModel::load_masters() {
  const HuggingFaceReader reader = files_->open_weights();
  set_masters([&](int piece, std::span<float> values) { reader.read_piece(piece, values); });
}

void TrainingModel::draw_masters(std::uint64_t seed) {
  set_masters(
      [&](int piece, std::span<float> values) { draw_piece(files_->table, piece, seed, values); });
}

UpdateTarget TrainingModel::target(const HeadOptions& head) {
  return {{ranks_->exec, *train_view_, train_parallel_, *pass_, options_.pass, head},
          *dp_group_,
          *gradients_,
          *optimizer_,
          [this] { publish(); }};
}

}  // namespace taper
