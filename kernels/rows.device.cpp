// SPDX-License-Identifier: Apache-2.0
//
// The launchers of copy.hpp, embedding.hpp, rope.hpp, dot_rows.hpp, adamw.hpp and gradient.hpp for
// CUDA.
#include <algorithm>

#include "base/CudaCall.hpp"
#include "base/Error.hpp"
#include "kernels/Staging.hpp"
#include "kernels/detail/rows_device.inl.hpp"

namespace taper {
namespace {

using Rows = VectorView<const std::int32_t, CudaExec>;

template <class T>
using HostView = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
template <class T>
using DeviceView = Kokkos::View<T*, Kokkos::CudaSpace, Kokkos::MemoryUnmanaged>;

template <class T>
void to_host(const CudaExec& exec, std::span<T> to, VectorView<const T, CudaExec> from) {
  TAPER_EXPECT(to.size() == from.size());
  Kokkos::deep_copy(detail::kokkos_space(exec), HostView<T>(to.data(), to.size()),
                    DeviceView<const T>(from.data(), from.size()));
  exec.fence();
}
template <class T>
void from_host(const CudaExec& exec, VectorView<T, CudaExec> to, std::span<const T> from) {
  TAPER_EXPECT(to.size() == from.size());
  Kokkos::deep_copy(detail::kokkos_space(exec), DeviceView<T>(to.data(), to.size()),
                    HostView<const T>(from.data(), from.size()));
  exec.fence();
}

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
void add_rows<CudaExec>(const CudaExec& exec, const GradientView& y, ConstFloatMatrix x, Rows rows,
                        std::int32_t first) {
  TAPER_EXPECT(y.columns == x.extent_int(1) && x.extent(0) == rows.size());
  detail::device_add_rows(exec, y, x, rows, first);
}

template <>
void copy_to_host<CudaExec>(const CudaExec& exec, std::span<float> to, ConstFloatVector from) {
  to_host<float>(exec, to, from);
}
template <>
void copy_from_host<CudaExec>(const CudaExec& exec, FloatVector to, std::span<const float> from) {
  from_host<float>(exec, to, from);
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
void dot_rows_backward<CudaExec>(const CudaExec& exec, FloatMatrix dx, const GradientView& dw,
                                 ConstFloatVector dy, ConstFloatMatrix x, ConstFloatVector w) {
  TAPER_EXPECT(dx.extent(0) == x.extent(0) && dx.extent(1) == x.extent(1) &&
               dy.size() == x.extent(0) && dw.size() == x.extent_int(1) && w.size() == x.extent(1));
  detail::device_dot_rows_backward(exec, dx, dw, dy, x, w);
}

template <>
void adamw<CudaExec>(const CudaExec& exec, FloatVector parameters, FloatVector first,
                     FloatVector second, const GradientView& gradients, const AdamWStep& step) {
  TAPER_EXPECT(static_cast<std::int64_t>(parameters.size()) == gradients.size() &&
               parameters.size() == first.size() && first.size() == second.size());
  detail::device_adamw(exec, parameters, first, second, gradients, step);
}
template <>
void sum_squares<CudaExec>(const CudaExec& exec, std::span<double> sums, const GradientView& x,
                           std::span<const std::int64_t> offsets) {
  TAPER_EXPECT(offsets.size() == sums.size() + 1);
  if (sums.empty()) return;
  const StagedInput<std::int64_t> parts(offsets);
  Staged<double> results(sums.size());
  detail::device_sum_squares(exec, results.data(), x, parts.view());
  exec.fence();
  std::copy(results.begin(), results.end(), sums.begin());
}

template <>
void clear<CudaExec>(const CudaExec& exec, const GradientView& sums) {
  void* const to = sums.is_fixed() ? static_cast<void*>(sums.fixed()) : sums.f32();
  const std::int64_t element = sums.is_fixed() ? sizeof(Fixed) : sizeof(float);
  require_cuda(
      cudaMemsetAsync(to, 0, static_cast<std::size_t>(sums.size() * element), exec.stream()),
      "cudaMemsetAsync");
}
template <>
void add_fixed_sums<CudaExec>(const CudaExec& exec, VectorView<Fixed, CudaExec> sums,
                              VectorView<const Fixed, CudaExec> terms) {
  TAPER_EXPECT(sums.size() == terms.size());
  detail::device_add_fixed_sums(exec, sums, terms);
}

template <>
void copy_to_host<CudaExec>(const CudaExec& exec, std::span<Fixed> to,
                            VectorView<const Fixed, CudaExec> from) {
  to_host<Fixed>(exec, to, from);
}
template <>
void copy_from_host<CudaExec>(const CudaExec& exec, VectorView<Fixed, CudaExec> to,
                              std::span<const Fixed> from) {
  from_host<Fixed>(exec, to, from);
}

}  // namespace taper
