// SPDX-License-Identifier: Apache-2.0
#include "model/Gradients.hpp"

#include <span>
#include <vector>

#include "comm/Collectives.hpp"
#include "kernels/copy.hpp"
#include "model/DeviceCollectives.hpp"

namespace taper {
namespace {

// Sums a vector of which the ranks have parts: this one `size` elements from `begin` on, of
// `total`. All of it travels, zero where it is not held: adding zero changes nothing. Collective
// over `group`.
template <class T>
void sum_parts(const Exec& exec, const Group& group, T* mine, std::int64_t size, std::int64_t begin,
               std::int64_t total) {
  std::vector<T> all(static_cast<std::size_t>(total));
  const VectorView<T, Exec> on_device(mine, static_cast<std::size_t>(size));
  const std::span<T> held(all.data() + begin, on_device.size());
  copy_to_host(exec, held, on_device);
  all_reduce_ordered_sum(group, all);
  copy_from_host(exec, on_device, held);
}

}  // namespace

GradientView Gradients::vector(int tensor) const {
  if (tensor < 0) return {};
  return all_.part(local_->offset(tensor), local_->offset(tensor + 1) - local_->offset(tensor));
}

GradientView Gradients::matrix(int tensor) const {
  GradientView view = vector(tensor);
  if (tensor < 0) return view;
  view.rows = local_->rows(tensor);
  view.columns = local_->table().tensors()[tensor].columns;
  return view;
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
  taper::clear(exec, all_);
}

void Gradients::sum_shared(const Exec& exec, const Group& group) const {
  const ParamTable& table = local_->table();
  const bool heads_shared = group.size() > table.config().kv_heads;
  for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t) {
    const ParamTensor& tensor = table.tensors()[t];
    if (tensor.role == ParamRole::kQueryNorm || tensor.role == ParamRole::kKeyNorm)
      all_reduce_sum(exec, group, vector(t));
    if (tensor.kind != ShardKind::kKvHeads || !heads_shared) continue;
    const GradientView mine = vector(t);
    const std::int64_t begin = local_->units(t).begin * tensor.unit_size(),
                       total = tensor.units * tensor.unit_size();
    if (mine.is_fixed())
      sum_parts(exec, group, mine.fixed(), mine.size(), begin, total);
    else
      sum_parts(exec, group, mine.f32(), mine.size(), begin, total);
  }
}

}  // namespace taper
