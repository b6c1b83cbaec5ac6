// SPDX-License-Identifier: Apache-2.0
//
// The launchers of product.hpp for CUDA; those of the host are in product.cpp.
#include "kernels/detail/TensorProduct.hpp"
#include "kernels/detail/product_args.hpp"
#include "kernels/detail/product_device.inl.hpp"

namespace taper {
namespace {

void launch(const char* label, const CudaExec& exec, const detail::ProductArgs& args) {
  if (exec.arithmetic == Arithmetic::kBf16)
    detail::tensor_product(exec, args);
  else
    detail::device_product(label, exec, args);
}

}  // namespace

template <>
void multiply<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> y,
                        MatrixView<const float, CudaExec> x, const PackedMatrix& w,
                        VectorView<const float, CudaExec> bias) {
  launch("taper::multiply", exec, detail::multiply_args(y, x, w, bias.data()));
}

template <>
void multiply_leaves<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> y,
                               MatrixView<const float, CudaExec> x, const PackedMatrix& w,
                               const LeafOrder& leaves) {
  launch("taper::multiply_leaves", exec, detail::multiply_leaves_args(y, x, w, leaves));
}

template <>
void accumulate_outer<CudaExec>(const CudaExec& exec, const GradientView& gradient,
                                MatrixView<const float, CudaExec> a,
                                MatrixView<const float, CudaExec> b) {
  const detail::ProductArgs args = detail::accumulate_outer_args(gradient, a, b);
  if (args.last_leaf_k == 0) return;
  if (exec.arithmetic == Arithmetic::kBf16)
    detail::tensor_outer_product(exec, args);
  else
    detail::device_product("taper::accumulate_outer", exec, args);
}

namespace {

template <class T>
void pack(const CudaExec& exec, void* packed, WeightType type, MatrixView<const T, CudaExec> stored,
          PackOrder order) {
  const detail::StoredMatrix<T> s = detail::stored_matrix(stored, order);
  detail::device_pack_panels(exec, packed, type, s);
}

}  // namespace

template <>
void pack_panels<CudaExec, float>(const CudaExec& exec, void* packed, WeightType type,
                                  MatrixView<const float, CudaExec> stored, PackOrder order) {
  pack(exec, packed, type, stored, order);
}
template <>
void pack_panels<CudaExec, bf16>(const CudaExec& exec, void* packed, WeightType type,
                                 MatrixView<const bf16, CudaExec> stored, PackOrder order) {
  pack(exec, packed, type, stored, order);
}

}  // namespace taper
