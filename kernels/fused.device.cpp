// SPDX-License-Identifier: Apache-2.0
//
// The launchers of fused.hpp for CUDA; those of the host are in fused.cpp.
#include "kernels/detail/TensorProduct.hpp"
#include "kernels/detail/fused_apart.hpp"
#include "kernels/detail/fused_device.inl.hpp"
#include "kernels/detail/product_args.hpp"

namespace taper {
namespace {

detail::ProductArgs args_of(const Projection<CudaExec>& p, ConstFloatMatrix x) {
  return detail::multiply_args(p.y, x, p.w, p.bias.data());
}

}  // namespace

template <>
void multiply_both<CudaExec>(const CudaExec& exec, const Projection<CudaExec>& first,
                             const Projection<CudaExec>& second, ConstFloatMatrix x) {
  if (exec.arithmetic == Arithmetic::kBf16) {
    detail::tensor_product_both(exec, args_of(first, x), args_of(second, x));
    return;
  }
  detail::multiply_both_apart(exec, first, second, x);
}

template <>
void multiply_swiglu<CudaExec>(const CudaExec& exec, FloatMatrix y, FloatMatrix gate_up,
                               ConstFloatMatrix x, const PackedMatrix& w) {
  if (exec.arithmetic == Arithmetic::kBf16) {
    detail::ProductArgs args = detail::multiply_args(gate_up, x, w);
    TAPER_EXPECT(y.extent(0) == gate_up.extent(0) && 2 * y.extent(1) == gate_up.extent(1) &&
                 y.extent(1) % kPanelColumns == 0);
    args.act = y.data();
    detail::tensor_product(exec, args);
    return;
  }
  detail::multiply_swiglu_apart(exec, y, gate_up, x, w);
}

template <>
void multiply_leaves_and_add<CudaExec>(const CudaExec& exec, FloatMatrix y,
                                       ConstFloatMatrix residual, ConstFloatMatrix x,
                                       const PackedMatrix& w, const LeafOrder& leaves,
                                       float* scratch) {
  TAPER_EXPECT(leaves.partials == 1 && residual.size() == y.size());
  if (exec.arithmetic == Arithmetic::kBf16) {
    detail::ProductArgs args = detail::multiply_leaves_args(y, x, w, leaves);
    args.residual = residual.data();
    detail::tensor_product(exec, args);
    return;
  }
  detail::multiply_leaves_and_add_apart(exec, y, residual, x, w, leaves, scratch);
}

template <>
void norm_heads<CudaExec>(const CudaExec& exec, const HeadNorm<CudaExec>& query,
                          const HeadNorm<CudaExec>& key_value, const AttentionShape& shape,
                          float eps) {
  detail::device_norm_heads(exec, query, key_value, shape, eps);
}

template <>
void rotate_and_write<CudaExec>(const CudaExec& exec, FloatMatrix q, FloatMatrix kv,
                                VectorView<const std::int32_t, CudaExec>, ConstFloatMatrix table,
                                const LayerPages& pages, Segments<CudaExec> segments,
                                const AttentionShape& shape) {
  detail::device_rotate_and_write(exec, q, kv, table, pages,
                                  detail::attention_grid(segments, shape.heads + shape.kv_heads),
                                  shape);
}

}  // namespace taper
