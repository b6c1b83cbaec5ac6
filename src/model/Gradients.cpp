// SPDX-License-Identifier: Apache-2.0
#include "model/Gradients.hpp"

namespace taper {

FloatMatrix Gradients::matrix(int tensor) const {
  if (tensor < 0) return {};
  return make_matrix(memory_ + layout_->offset(tensor), layout_->rows(tensor),
                     layout_->table().tensors()[tensor].columns);
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

}  // namespace taper
