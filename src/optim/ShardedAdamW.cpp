// SPDX-License-Identifier: Apache-2.0
#include "optim/ShardedAdamW.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
  if (dp_group.size() > 1) plan.add(owner.item(kSummedItem), owner.phase, bytes);
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
  summed_ = dp_group.size() > 1 ? arena.take<float>(owner.item(kSummedItem), owner.phase, size())
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

// Of the whole model's gradient: parameters that several shards hold count on the first of them.
// Collective over both groups.
double ShardedAdamW::squared_norm(const Exec& exec, FloatVector gradient) const {
  const ParamTable& table = local_->table();
  const int shard = tp_group_->rank();
  double sum = 0.0;
  for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t) {
    const ParamTensor& tensor = table.tensors()[t];
    const Range units = local_->units(t);
    int first = units.begin;
    if (shard > 0)
      first =
          std::max(first, ModelShard(table, tp_group_->size(), shard - 1).units(tensor.kind).end);
    const std::int64_t counted = local_->offset(t) + (first - units.begin) * tensor.unit_size();
    const std::int64_t from = std::max(counted, begin());
    const std::int64_t to = std::min(local_->offset(t + 1), begin() + size());
    if (from < to)
      sum += sum_squares(exec, ConstFloatVector(gradient.data() + (from - begin()), to - from));
  }
  std::vector<double> total{sum};
  all_reduce_ordered_sum(*dp_group_, total);
  all_reduce_ordered_sum(*tp_group_, total);
  return total.front();
}

// The first tensor with an entry that is not finite. Collective over both groups.
std::string ShardedAdamW::first_bad_tensor(const Exec& exec, FloatVector gradient) const {
  std::vector<float> buffer;
  std::vector<std::int32_t> first{std::numeric_limits<std::int32_t>::max()};
  for (const auto& piece : owned()) {
    const auto values = host_values(
        exec, ConstFloatVector(gradient.data() + (piece.offset - begin()), piece.size), buffer);
    if (std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
      continue;
    first[0] = local_->table().tensor_of_piece(piece.id);
    break;
  }
  all_reduce_min(*dp_group_, first);
  all_reduce_min(*tp_group_, first);
  const auto& tensors = local_->table().tensors();
  // A norm may overflow although every entry is finite.
  const std::string name = first[0] < static_cast<std::int32_t>(tensors.size())
                               ? tensors[first[0]].name
                               : "the norm over all tensors";
  return model_.empty() ? name : model_ + ": " + name;
}

OptimizerReport ShardedAdamW::step(const Exec& exec, const Gradients& gradients,
                                   double learning_rate) {
  OptimizerReport report;
  report.learning_rate = learning_rate;
  gradients.sum_shared(exec, *tp_group_);
  const FloatVector all = gradients.all();
  FloatVector mine(all.data() + begin(), size());
  if (summed_ != nullptr) {
    mine = FloatVector(summed_, size());
    reduce_scatter_ordered_sum(exec, *dp_group_, mine, all, shards_.offsets(), exchange_);
  }
  report.grad_norm = std::sqrt(squared_norm(exec, mine));
  if (!std::isfinite(report.grad_norm)) {
    report.skipped = true;
    report.bad_tensor = first_bad_tensor(exec, mine);
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
    if (options_.clip_norm > 0.0)
      s.grad_scale =
          static_cast<float>(std::min(1.0, options_.clip_norm / (report.grad_norm + 1e-6)));
    adamw(exec, master(), first_moment(), second_moment(), mine, s);
  }
  gradients.clear(exec);
  return report;
}

}  // namespace taper
