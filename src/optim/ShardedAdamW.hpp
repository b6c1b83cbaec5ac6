// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/Group.hpp"
#include "device/Arena.hpp"
#include "model/Gradients.hpp"
#include "optim/Ownership.hpp"

namespace taper {

// Limits are those of the run file (describe_optimizer).
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  double clip_norm = 1.0;  // largest 2-norm of the gradient; 0: no clipping
  enum class OnNonFinite { kStop, kSkip } on_non_finite = OnNonFinite::kStop;
  // What is kept in page-locked memory of the host, which a GPU reads and writes over its bus. The
  // same bits; no difference on the host.
  enum class Offload { kNone, kMoments, kAll } offload = Offload::kNone;
  GradientType gradients = GradientType::kF32;  // of the sums that a step is made of
};

// What an optimizer step did, the same on all ranks.
struct OptimizerReport {
  double grad_norm = 0.0;  // 2-norm over the whole model, before clipping
  double learning_rate = 0.0;
  bool skipped = false;    // a gradient was not finite
  std::string bad_tensor;  // the first such tensor
};

// AdamW with f32 masters and moments sharded over data-parallel ranks (ZeRO stage 1).
class ShardedAdamW {
 public:
  static constexpr std::int64_t kParamBytes = 3 * 4;  // of a parameter: master, two moments

  static void add_memory(MemoryPlan& plan, const LocalParams& local, const Group& dp_group,
                         const AdamWOptions& options, const MemoryOwner& owner = {});

  // The groups must outlive this object. dp_group.rank() is the replica.
  ShardedAdamW(const LocalParams& local, const Group& tp_group, const Group& dp_group,
               const AdamWOptions& options, Arena& arena, const MemoryOwner& owner = {});

  // One step with the gradients of this rank's micro-batches, which are summed over the replicas
  // here, and multiplied by `scale`: `gradients` has to be cleared before the next. Collective over
  // the tensor- and the data-parallel group.
  OptimizerReport step(const Exec& exec, const Gradients& gradients, double learning_rate,
                       double scale = 1.0);

  // The owned stretch of the flat local parameters: offset of the first element, and the state.
  std::int64_t begin() const { return shards_.begin(dp_group_->rank()); }
  std::int64_t size() const { return shards_.size(dp_group_->rank()); }
  FloatVector master() const { return FloatVector(master_, size()); }
  FloatVector first_moment() const { return FloatVector(first_, size()); }
  FloatVector second_moment() const { return FloatVector(second_, size()); }
  // The local pieces of that stretch.
  std::vector<LocalParams::Piece> owned() const;
  // Sets the masters of one of them.
  void set_master(const Exec& exec, const LocalParams::Piece& piece, std::span<const float> values);

  bool keeps_masters_on_host() const { return options_.offload == AdamWOptions::Offload::kAll; }

  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  std::vector<double> squared_norms(const Exec& exec, const GradientView& gradient) const;
  std::string first_bad_tensor(std::span<const double> squared_norms) const;

  const LocalParams* local_;
  const Group* tp_group_;
  const Group* dp_group_;
  AdamWOptions options_;
  std::string model_;  // as MemoryOwner has it
  StateShards shards_;
  float *master_, *first_, *second_;
  void* summed_;
  FloatVector exchange_;  // workspace between connected devices
  std::int64_t steps_ = 0;
};

}  // namespace taper
