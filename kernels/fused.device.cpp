// SPDX-License-Identifier: Apache-2.0
//
// The launchers of fused.hpp for CUDA; those of the host are in fused.cpp.
#include "kernels/activation.hpp"
#include "kernels/detail/TensorProduct.hpp"
#include "kernels/detail/fused_device.inl.hpp"
#include "kernels/detail/product_args.hpp"

namespace taper {
namespace {

using Vector = VectorView<float, CudaExec>;
using ConstVector = VectorView<const float, CudaExec>;
using Matrix = MatrixView<float, CudaExec>;
using ConstMatrix = MatrixView<const float, CudaExec>;

detail::ProductArgs args_of(const Projection<CudaExec>& p, ConstMatrix x) {
  return detail::multiply_args(p.y, x, p.w, p.bias.data());
}

}  // namespace

template <>
void multiply_both<CudaExec>(const CudaExec& exec, const Projection<CudaExec>& first,
                             const Projection<CudaExec>& second, ConstMatrix x) {
  if (exec.arithmetic == Arithmetic::kBf16) {
    detail::tensor_product_both(exec, args_of(first, x), args_of(second, x));
    return;
  }
  multiply(exec, first.y, x, first.w, first.bias);
  multiply(exec, second.y, x, second.w, second.bias);
}

template <>
void multiply_swiglu<CudaExec>(const CudaExec& exec, Matrix y, Matrix gate_up, ConstMatrix x,
                               const PackedMatrix& w) {
  if (exec.arithmetic == Arithmetic::kBf16) {
    detail::ProductArgs args = detail::multiply_args(gate_up, x, w);
    TAPER_EXPECT(y.extent(0) == gate_up.extent(0) && 2 * y.extent(1) == gate_up.extent(1) &&
                 y.extent(1) % kPanelColumns == 0);
    args.act = y.data();
    detail::tensor_product(exec, args);
    return;
  }
  multiply(exec, gate_up, x, w);
  swiglu(exec, y, ConstMatrix(gate_up));
}

template <>
void multiply_leaves_and_add<CudaExec>(const CudaExec& exec, Matrix y, ConstMatrix residual,
                                       ConstMatrix x, const PackedMatrix& w,
                                       const LeafOrder& leaves, float* scratch) {
  TAPER_EXPECT(leaves.partials == 1 && residual.size() == y.size());
  if (exec.arithmetic == Arithmetic::kBf16) {
    detail::ProductArgs args = detail::multiply_leaves_args(y, x, w, leaves);
    args.residual = residual.data();
    detail::tensor_product(exec, args);
    return;
  }
  multiply_leaves(exec, Matrix(scratch, y.extent(0), y.extent(1)), x, w, leaves);
  add(exec, Vector(y.data(), y.size()), ConstVector(residual.data(), residual.size()),
      ConstVector(scratch, y.size()));
}

template <>
void norm_heads<CudaExec>(const CudaExec& exec, const HeadNorm<CudaExec>& query,
                          const HeadNorm<CudaExec>& key_value, const AttentionShape& shape,
                          float eps) {
  detail::device_norm_heads(exec, query, key_value, shape, eps);
}

template <>
void rotate_and_write<CudaExec>(const CudaExec& exec, Matrix q, Matrix kv,
                                VectorView<const std::int32_t, CudaExec>, ConstMatrix table,
                                const LayerPages& pages,
                                VectorView<const AttentionSegment, CudaExec> segments,
                                const AttentionShape& shape) {
  detail::device_rotate_and_write(exec, q, kv, table, pages,
                                  detail::attention_grid(segments, shape.heads + shape.kv_heads),
                                  shape);
}

}  // namespace taper
