// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/Group.hpp"
#include "model/Layer.hpp"
#include "model/ModelShard.hpp"

namespace taper {

// The gradient of all local parameters as one flat array in the order of LocalParams.
class Gradients {
 public:
  Gradients(const LocalParams& local, float* memory) : local_(&local), memory_(memory) {}

  const LocalParams& local() const { return *local_; }
  FloatVector all() const { return FloatVector(memory_, local_->size()); }
  FloatMatrix matrix(int tensor) const;
  FloatVector vector(int tensor) const;
  // Empty views if the model has no such tensor.
  FloatMatrix matrix(ParamRole role, int layer = -1) const {
    return matrix(local_->table().index_of(role, layer));
  }
  FloatVector vector(ParamRole role, int layer = -1) const {
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
  float* memory_;
};

}  // namespace taper
