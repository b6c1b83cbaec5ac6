// SPDX-License-Identifier: Apache-2.0
//
// The launchers of copy.hpp, embedding.hpp, rope.hpp, dot_rows.hpp and adamw.hpp for CUDA.
#include "base/Error.hpp"
#include "kernels/Staging.hpp"
#include "kernels/detail/rows_device.inl.hpp"

namespace taper {
namespace {

using Rows = VectorView<const std::int32_t, CudaExec>;

using HostFloats = Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
using ConstHostFloats = Kokkos::View<const float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
using DeviceFloats = Kokkos::View<float*, Kokkos::CudaSpace, Kokkos::MemoryUnmanaged>;
using ConstDeviceFloats = Kokkos::View<const float*, Kokkos::CudaSpace, Kokkos::MemoryUnmanaged>;

}  // namespace

template <>
void fill<CudaExec>(const CudaExec& exec, FloatVector y, float value) {
  detail::device_fill(exec, y, value);
}
template <>
void copy<CudaExec>(const CudaExec& exec, FloatVector y, ConstFloatVector x) {
  TAPER_EXPECT(y.size() == x.size());
  detail::device_copy(exec, y, x);
}
template <>
void copy_blocks<CudaExec>(const CudaExec& exec, VectorView<const BlockCopy, CudaExec> blocks,
                           std::int64_t size) {
  detail::device_copy_blocks(exec, blocks, size);
}
template <>
void gather_rows<CudaExec>(const CudaExec& exec, FloatMatrix y, ConstFloatMatrix x, Rows rows) {
  TAPER_EXPECT(y.extent(1) == x.extent(1) && y.extent(0) == rows.size());
  detail::device_gather_rows(exec, y, x, rows);
}
template <>
void scatter_rows<CudaExec>(const CudaExec& exec, FloatMatrix y, ConstFloatMatrix x, Rows rows) {
  TAPER_EXPECT(y.extent(1) == x.extent(1) && x.extent(0) == rows.size());
  detail::device_scatter_rows(exec, y, x, rows);
}
template <>
void add_rows<CudaExec>(const CudaExec& exec, FloatMatrix y, ConstFloatMatrix x, Rows rows,
                        std::int32_t first) {
  TAPER_EXPECT(y.extent(1) == x.extent(1) && x.extent(0) == rows.size());
  detail::device_add_rows(exec, y, x, rows, first);
}

template <>
void copy_to_host<CudaExec>(const CudaExec& exec, std::span<float> to, ConstFloatVector from) {
  TAPER_EXPECT(to.size() == from.size());
  Kokkos::deep_copy(detail::kokkos_space(exec), HostFloats(to.data(), to.size()),
                    ConstDeviceFloats(from.data(), from.size()));
  exec.fence();
}
template <>
void copy_from_host<CudaExec>(const CudaExec& exec, FloatVector to, std::span<const float> from) {
  TAPER_EXPECT(to.size() == from.size());
  Kokkos::deep_copy(detail::kokkos_space(exec), DeviceFloats(to.data(), to.size()),
                    ConstHostFloats(from.data(), from.size()));
  exec.fence();
}
template <>
std::span<const float> host_values<CudaExec>(const CudaExec& exec, ConstFloatVector x,
                                             std::vector<float>& buffer) {
  buffer.resize(x.size());
  copy_to_host(exec, buffer, x);
  return buffer;
}

template <>
void embed<CudaExec>(const CudaExec& exec, FloatMatrix y, Rows ids, const PackedMatrix& table,
                     std::int32_t vocab_begin) {
  TAPER_EXPECT(y.extent_int(1) == table.k && y.extent(0) == ids.size());
  detail::device_embed(exec, y, ids, table, vocab_begin);
}

template <>
void rope<CudaExec>(const CudaExec& exec, FloatMatrix x, Rows positions, ConstFloatMatrix table,
                    const RopeShape& shape, RopeDirection direction) {
  detail::device_rope(exec, x, positions, table, shape,
                      direction == RopeDirection::kForward ? 1.0f : -1.0f);
}

template <>
void dot_rows<CudaExec>(const CudaExec& exec, FloatVector y, ConstFloatMatrix x,
                        ConstFloatVector w) {
  TAPER_EXPECT(y.size() == x.extent(0) && w.size() == x.extent(1));
  detail::device_dot_rows(exec, y, x, w);
}
template <>
void dot_rows_backward<CudaExec>(const CudaExec& exec, FloatMatrix dx, FloatVector dw,
                                 ConstFloatVector dy, ConstFloatMatrix x, ConstFloatVector w) {
  TAPER_EXPECT(dx.extent(0) == x.extent(0) && dx.extent(1) == x.extent(1) &&
               dy.size() == x.extent(0) && dw.size() == x.extent(1) && w.size() == x.extent(1));
  detail::device_dot_rows_backward(exec, dx, dw, dy, x, w);
}

template <>
void adamw<CudaExec>(const CudaExec& exec, FloatVector parameters, FloatVector first,
                     FloatVector second, ConstFloatVector gradients, const AdamWStep& step) {
  TAPER_EXPECT(parameters.size() == gradients.size() && parameters.size() == first.size() &&
               first.size() == second.size());
  detail::device_adamw(exec, parameters, first, second, gradients, step);
}
template <>
double sum_squares<CudaExec>(const CudaExec& exec, ConstFloatVector x) {
  Staged<double> sums(detail::kSquareParts);
  detail::device_sum_squares(exec, sums.data(), x);
  exec.fence();
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace taper
