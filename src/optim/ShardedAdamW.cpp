// SPDX-License-Identifier: Apache-2.0
#include "optim/ShardedAdamW.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "kernels/adamw.hpp"
#include "kernels/copy.hpp"
#include "model/DeviceCollectives.hpp"

namespace taper {
namespace {

constexpr const char* kMasterItem = "weights (f32 masters)";
constexpr const char* kMomentItem = "optimizer moments";
constexpr const char* kSummedItem = "gradients (summed shard)";
constexpr const char* kExchangeItem = "gradients (exchange)";

}  // namespace

void ShardedAdamW::add_memory(MemoryPlan& plan, const LocalParams& local, const Group& dp_group,
                              const AdamWOptions& options, const MemoryOwner& owner) {
  using Offload = AdamWOptions::Offload;
  const std::int64_t bytes =
      StateShards(local, dp_group.size()).size(dp_group.rank()) * std::int64_t{sizeof(float)};
  const auto kind = [&](bool on_host) {
    return on_host ? MemoryKind::kStaging : MemoryKind::kModel;
  };
  plan.add(owner.item(kMasterItem), MemoryPhase::kAlways, bytes,
           kind(options.offload == Offload::kAll));
  plan.add(owner.item(kMomentItem), MemoryPhase::kAlways, arena_bytes(bytes) * 2,
           kind(options.offload != Offload::kNone));
  if (dp_group.size() > 1)
    plan.add(owner.item(kSummedItem), owner.phase,
             bytes / std::int64_t{sizeof(float)} * bytes_of(options.gradients));
  if (const std::int64_t floats = exchange_floats(dp_group); floats > 0)
    plan.add(owner.item(kExchangeItem), owner.phase, floats * std::int64_t{sizeof(float)});
}

ShardedAdamW::ShardedAdamW(const LocalParams& local, const Group& tp_group, const Group& dp_group,
                           const AdamWOptions& options, Arena& arena, const MemoryOwner& owner)
    : local_(&local),
      tp_group_(&tp_group),
      dp_group_(&dp_group),
      options_(options),
      model_(owner.model),
      shards_(local, dp_group.size()) {
  master_ = arena.take<float>(owner.item(kMasterItem), MemoryPhase::kAlways, size());
  first_ = arena.take<float>(owner.item(kMomentItem), MemoryPhase::kAlways, size());
  second_ = arena.take<float>(owner.item(kMomentItem), MemoryPhase::kAlways, size());
  summed_ = dp_group.size() > 1 ? arena.take(owner.item(kSummedItem), owner.phase,
                                             size() * bytes_of(options.gradients))
                                : nullptr;
  if (const std::int64_t floats = exchange_floats(dp_group); floats > 0)
    exchange_ = FloatVector(arena.take<float>(owner.item(kExchangeItem), owner.phase, floats),
                            static_cast<std::size_t>(floats));
}

std::vector<LocalParams::Piece> ShardedAdamW::owned() const {
  std::vector<LocalParams::Piece> list;
  for (const auto& piece : local_->pieces())
    if (piece.offset >= begin() && piece.offset < begin() + size()) list.push_back(piece);
  return list;
}

void ShardedAdamW::set_master(const Exec& exec, const LocalParams::Piece& piece,
                              std::span<const float> values) {
  TAPER_EXPECT(static_cast<std::int64_t>(values.size()) == piece.size);
  copy_from_host(exec, FloatVector(master_ + (piece.offset - begin()), piece.size), values);
}

// Of each piece of the whole model's gradient; what several shards hold is said by the first of
// them. They do not depend on who holds what, nor does their sum. Collective over both groups.
std::vector<double> ShardedAdamW::squared_norms(const Exec& exec,
                                                const GradientView& gradient) const {
  const ParamTable& table = local_->table();
  const int shard = tp_group_->rank();
  const auto pieces = owned();
  std::vector<std::int64_t> offsets{0};
  for (const auto& piece : pieces) offsets.push_back(piece.offset + piece.size - begin());
  std::vector<double> mine(pieces.size()), all(static_cast<std::size_t>(table.pieces()));
  sum_squares(exec, mine, gradient, offsets);
  std::optional<ModelShard> before;
  if (shard > 0) before.emplace(table, tp_group_->size(), shard - 1);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const int id = pieces[i].id, tensor = table.tensor_of_piece(id);
    const bool is_first = !before || id - table.first_piece(tensor) >=
                                         before->units(table.tensors()[tensor].kind).end;
    if (is_first) all[id] = mine[i];
  }
  // Zeros but of one rank: their sum is exact.
  all_reduce_ordered_sum(*dp_group_, all);
  all_reduce_ordered_sum(*tp_group_, all);
  return all;
}

// The first tensor that has a norm which is not finite.
std::string ShardedAdamW::first_bad_tensor(std::span<const double> squared_norms) const {
  const auto bad = std::find_if(squared_norms.begin(), squared_norms.end(),
                                [](double v) { return !std::isfinite(v); });
  const ParamTable& table = local_->table();
  const std::string name =
      bad != squared_norms.end()
          ? table.tensors()[table.tensor_of_piece(static_cast<int>(bad - squared_norms.begin()))]
                .name
          : "the norm over all tensors";  // which may overflow although every one is finite
  return model_.empty() ? name : model_ + ": " + name;
}

OptimizerReport ShardedAdamW::step(const Exec& exec, const Gradients& gradients,
                                   double learning_rate, double scale) {
  OptimizerReport report;
  report.learning_rate = learning_rate;
  gradients.sum_shared(exec, *tp_group_);
  TAPER_EXPECT(gradients.all().type == options_.gradients);
  GradientView mine = gradients.all().part(begin(), size());
  if (summed_ != nullptr) {
    mine = {summed_, options_.gradients, 1, size()};
    reduce_scatter_sum(exec, *dp_group_, mine, gradients.all(), shards_.offsets(), exchange_);
  }
  const std::vector<double> norms = squared_norms(exec, mine);
  report.grad_norm = scale * std::sqrt(std::accumulate(norms.begin(), norms.end(), 0.0));
  if (!std::isfinite(report.grad_norm)) {
    report.skipped = true;
    report.bad_tensor = first_bad_tensor(norms);
    if (options_.on_non_finite == AdamWOptions::OnNonFinite::kStop)
      TAPER_FAIL(ExitCode::kFailure,
                 "the gradient of '"
                     << report.bad_tensor << "' is not finite (step " << steps_ + 1
                     << "); lower the learning rate, or set Optimizer/On Non Finite to skip");
  } else {
    ++steps_;
    const double t = static_cast<double>(steps_);
    AdamWStep s;
    s.lr = static_cast<float>(learning_rate);
    s.beta1 = static_cast<float>(options_.beta1);
    s.beta2 = static_cast<float>(options_.beta2);
    s.rest1 = static_cast<float>(1.0 - options_.beta1);
    s.rest2 = static_cast<float>(1.0 - options_.beta2);
    s.eps = static_cast<float>(options_.eps);
    s.weight_decay = static_cast<float>(options_.weight_decay);
    s.correction1 = static_cast<float>(1.0 - std::pow(options_.beta1, t));
    s.sqrt_correction2 = static_cast<float>(std::sqrt(1.0 - std::pow(options_.beta2, t)));
    const double clip = options_.clip_norm > 0.0
                            ? std::min(1.0, options_.clip_norm / (report.grad_norm + 1e-6))
                            : 1.0;
    s.grad_scale = static_cast<float>(scale * clip);
    adamw(exec, master(), first_moment(), second_moment(), mine, s);
  }
  return report;
}

}  // namespace taper
