// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/Group.hpp"
#include "kernels/gradient.hpp"
#include "model/Layer.hpp"
#include "model/ModelShard.hpp"

namespace taper {

// The gradient of all local parameters as one flat array in the order of LocalParams.
class Gradients {
 public:
  // Sums of `type` in `memory`.
  Gradients(const LocalParams& local, GradientType type, void* memory)
      : local_(&local), all_(memory, type, 1, local.size()) {}

  const LocalParams& local() const { return *local_; }
  const GradientView& all() const { return all_; }
  GradientView matrix(int tensor) const;
  GradientView vector(int tensor) const;
  // Empty views if the model has no such tensor.
  GradientView matrix(ParamRole role, int layer = -1) const {
    return matrix(local_->table().index_of(role, layer));
  }
  GradientView vector(ParamRole role, int layer = -1) const {
    return vector(local_->table().index_of(role, layer));
  }
  LayerGradients layer(int l) const;

  // Sets all of it to zero.
  void clear(const Exec& exec) const;

  // Sums the parameters that several shards hold but of which each saw its own query heads only:
  // norms over heads, and KV heads if the degree exceeds their number. All holders get the same
  // bits. Collective over `group`, the tensor-parallel group of the layout.
  void sum_shared(const Exec& exec, const Group& group) const;

 private:
  const LocalParams* local_;
  GradientView all_;
};

}  // namespace taper
