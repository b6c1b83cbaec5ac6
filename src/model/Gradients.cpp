// SPDX-License-Identifier: Apache-2.0
#include "model/Gradients.hpp"

#include <span>
#include <vector>

#include "comm/Collectives.hpp"
#include "kernels/copy.hpp"
#include "model/DeviceCollectives.hpp"

namespace taper {

FloatMatrix Gradients::matrix(int tensor) const {
  if (tensor < 0) return {};
  return make_matrix(memory_ + local_->offset(tensor), local_->rows(tensor),
                     local_->table().tensors()[tensor].columns);
}

FloatVector Gradients::vector(int tensor) const {
  if (tensor < 0) return {};
  const auto m = matrix(tensor);
  return FloatVector(m.data(), m.extent(0) * m.extent(1));
}

LayerGradients Gradients::layer(int l) const {
  return {matrix(ParamRole::kQuery, l),       matrix(ParamRole::kKeyValue, l),
          matrix(ParamRole::kOutput, l),      matrix(ParamRole::kGateUp, l),
          matrix(ParamRole::kDown, l),        vector(ParamRole::kInputNorm, l),
          vector(ParamRole::kPostNorm, l),    vector(ParamRole::kQueryNorm, l),
          vector(ParamRole::kKeyNorm, l),     vector(ParamRole::kQueryBias, l),
          vector(ParamRole::kKeyValueBias, l)};
}

void Gradients::clear(const Exec& exec) const {
  fill(exec, all(), 0.0f);
}

void Gradients::sum_shared(const Exec& exec, const Group& group) const {
  const ParamTable& table = local_->table();
  const bool heads_shared = group.size() > table.config().kv_heads;
  for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t) {
    const ParamTensor& tensor = table.tensors()[t];
    if (tensor.role == ParamRole::kQueryNorm || tensor.role == ParamRole::kKeyNorm)
      all_reduce_ordered_sum(exec, group, vector(t));
    if (tensor.kind != ShardKind::kKvHeads || !heads_shared) continue;
    // All heads travel, zero where they are not held: adding zero changes nothing.
    const FloatVector mine = vector(t);
    std::vector<float> all(static_cast<std::size_t>(tensor.units * tensor.unit_size()), 0.0f);
    const std::span<float> held(all.data() + local_->units(t).begin * tensor.unit_size(),
                                mine.size());
    copy_to_host(exec, held, mine);
    all_reduce_ordered_sum(group, all);
    copy_from_host(exec, mine, held);
  }
}

}  // namespace taper
