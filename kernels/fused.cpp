// SPDX-License-Identifier: Apache-2.0
#include "kernels/fused.hpp"

#include "kernels/copy.hpp"
#include "kernels/detail/fused_apart.hpp"
#include "kernels/norm.hpp"
#include "kernels/rope.hpp"

namespace taper {

template <>
void multiply_both<HostExec>(const HostExec& exec, const Projection<HostExec>& first,
                             const Projection<HostExec>& second,
                             MatrixView<const float, HostExec> x) {
  detail::multiply_both_apart(exec, first, second, x);
}

template <>
void multiply_swiglu<HostExec>(const HostExec& exec, MatrixView<float, HostExec> y,
                               MatrixView<float, HostExec> gate_up,
                               MatrixView<const float, HostExec> x, const PackedMatrix& w) {
  detail::multiply_swiglu_apart(exec, y, gate_up, x, w);
}

template <>
void multiply_leaves_and_add<HostExec>(const HostExec& exec, MatrixView<float, HostExec> y,
                                       MatrixView<const float, HostExec> residual,
                                       MatrixView<const float, HostExec> x, const PackedMatrix& w,
                                       const LeafOrder& leaves, float* scratch) {
  detail::multiply_leaves_and_add_apart(exec, y, residual, x, w, leaves, scratch);
}

template <>
void norm_heads<HostExec>(const HostExec& exec, const HeadNorm<HostExec>& query,
                          const HeadNorm<HostExec>& key_value, const AttentionShape& shape,
                          float eps) {
  const int d = shape.head_dim, pad = shape.head_pad;
  rmsnorm(exec, query.y, query.inv, query.x, query.gain, {d, pad, eps});
  copy(exec, key_value.y, key_value.x);
  rmsnorm(exec, key_value.y, key_value.inv, key_value.x, key_value.gain, {d, 2 * pad, eps});
}

template <>
void rotate_and_write<HostExec>(const HostExec& exec, MatrixView<float, HostExec> q,
                                MatrixView<float, HostExec> kv,
                                VectorView<const std::int32_t, HostExec> positions,
                                MatrixView<const float, HostExec> table, const LayerPages& pages,
                                Segments<HostExec> segments, const AttentionShape& shape) {
  const int d = shape.head_dim, pad = shape.head_pad;
  rope(exec, q, positions, table, {shape.heads, pad, d}, RopeDirection::kForward);
  rope(exec, kv, positions, table, {shape.kv_heads, 2 * pad, d}, RopeDirection::kForward);
  write_pages(exec, pages, MatrixView<const float, HostExec>(kv), segments, shape);
}

}  // namespace taper
