// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "device/Arena.hpp"
#include "kernels/Views.hpp"
#include "kernels/product.hpp"
#include "model/ModelShard.hpp"

namespace taper {

// Whether packed weights also exist transposed, for gradients by inputs.
enum class WithBackward { kNo, kYes };

// In which memory packed weights are.
struct PackedMemory {
  MemoryPhase phase = MemoryPhase::kAlways;
  MemoryKind kind = MemoryKind::kModel;
  MemoryShare share = {};  // with whom the rank keeps them
};

// The weights of a shard in the form that kernels read: matrices as panels in the forward type,
// norms and biases in f32. Shards of a larger tensor-parallel degree that nest inside this one are
// views of it (ModelView).
class PackedModel {
 public:
  // Adds what the constructor will take to the plan.
  // `name` tells models apart in the plan ("policy", "reference").
  static void add_memory(MemoryPlan& plan, const std::string& name, const LocalParams& local,
                         WeightType type, WithBackward backward, const PackedMemory& memory = {});

  PackedModel(const std::string& name, const LocalParams& local, const ModelShard& shard,
              WeightType type, WithBackward backward, Arena& arena,
              MemoryPhase phase = MemoryPhase::kAlways);

  // Packs local tensor `tensor` from its stored f32 rows, rounding to the forward type. Of ranks
  // that share the weights one does.
  void pack(const Exec& exec, int tensor, const float* values);
  // Takes the forward weights of a model of the same shard and type that is in staging memory.
  void bring(const Exec& exec, const PackedModel& staged);

  const LocalParams& local() const { return *local_; }
  const ModelShard& shard() const { return shard_; }
  WeightType type() const { return type_; }

  // y = x W: columns are the stored rows (queries, ...), or for transposed storage (output, down)
  // the stored columns.
  PackedMatrix forward(int tensor) const { return forward_[tensor]; }
  // dx = dy W^T.
  PackedMatrix backward(int tensor) const { return backward_[tensor]; }
  ConstFloatVector vector(int tensor) const { return vectors_[tensor]; }

 private:
  const LocalParams* local_;
  ModelShard shard_;
  WeightType type_;
  std::vector<PackedMatrix> forward_, backward_;
  std::vector<FloatVector> vectors_;
};

// The weights of one layer as one rank of a layout sees them.
struct LayerWeights {
  PackedMatrix query, key_value, output, gate_up, down;
  // Transposed; empty without backward.
  PackedMatrix query_t, key_value_t, output_t, gate_up_t, down_t;
  ConstFloatVector input_norm, post_norm, query_norm, key_norm, query_bias, key_value_bias;
};

// A PackedModel seen as shard (degree, index) of the same or a larger degree nested in it: no
// weight is copied.
class ModelView {
 public:
  ModelView(const PackedModel& packed, const ModelShard& shard);

  const ParamTable& table() const { return packed_->local().table(); }
  const ModelShard& shard() const { return shard_; }
  const LayerWeights& layer(int l) const { return layers_[l]; }
  PackedMatrix embedding() const { return embedding_; }
  PackedMatrix head() const { return head_; }
  PackedMatrix head_t() const { return head_t_; }
  ConstFloatVector final_norm() const { return final_norm_; }
  // Weights of the scalar head, (h); empty if the output is tokens, in which case head() is
  // not.
  ConstFloatVector score() const { return score_; }

 private:
  // The part of a packed matrix that this shard has, of `tensor` packed in `order`.
  PackedMatrix slice(const PackedMatrix& matrix, int tensor, PackOrder order) const;
  ConstFloatVector slice_vector(int tensor) const;
  LayerWeights make_layer(int layer) const;

  const PackedModel* packed_;
  ModelShard shard_;
  std::vector<LayerWeights> layers_;
  PackedMatrix embedding_, head_, head_t_;
  ConstFloatVector final_norm_, score_;
};

}  // namespace taper
