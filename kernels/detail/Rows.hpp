// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace taper::detail {

inline constexpr float kMassOne = 1099511627776.0f;  // 2^40: the mass of the largest logit

// The scalars of one AdamW step (Loshchilov and Hutter, 2019), with t the step counted from 1:
// p = p (1 - lr wd); m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; p -= lr / correction1 * m /
// (sqrt(v) / sqrt_correction2 + eps), g being grad_scale times the gradient.
struct AdamWStep {
  float lr = 0.0f;
  float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, weight_decay = 0.0f;
  float rest1 = 0.1f,
        rest2 = 0.001f;      // 1 - b1 and 1 - b2, rounded once: 1.0f - 0.999f would be off by 1e-5
  float correction1 = 1.0f;  // 1 - b1^t
  float sqrt_correction2 = 1.0f;  // sqrt(1 - b2^t)
  float grad_scale = 1.0f;
};

// Rows whose columns are added up: a[r * stride + c] * b[r * stride + c] * scale[r * scale_stride].
struct ColumnArgs {
  const float* a = nullptr;
  const float* b = nullptr;      // null: ones
  const float* scale = nullptr;  // null: ones
  std::int64_t stride = 0, scale_stride = 1;
  int rows = 0;
};

}  // namespace taper::detail
