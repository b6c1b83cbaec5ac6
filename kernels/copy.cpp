// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {
namespace {

constexpr std::int64_t kPart = 16384;  // floats per task

template <class E>
bool equal_columns(MatrixView<float, E> y, MatrixView<const float, E> x) {
  return y.extent(1) == x.extent(1);
}

}  // namespace

template <class E>
void fill(const E& exec, VectorView<float, E> y, float value) {
  const std::int64_t n = y.size();
  detail::for_each("taper::fill", exec, (n + kPart - 1) / kPart, [=](const std::int64_t i) {
    const std::int64_t at = i * kPart, size = n - at < kPart ? n - at : kPart;
    std::fill_n(y.data() + at, size, value);
  });
}

template <class E>
void copy(const E& exec, VectorView<float, E> y, VectorView<const float, E> x) {
  TAPER_EXPECT(y.size() == x.size());
  const std::int64_t n = y.size();
  detail::for_each("taper::copy", exec, (n + kPart - 1) / kPart, [=](const std::int64_t i) {
    const std::int64_t at = i * kPart, size = n - at < kPart ? n - at : kPart;
    std::copy_n(x.data() + at, size, y.data() + at);
  });
}

template <class E>
void copy_blocks(const E& exec, VectorView<const BlockCopy, E> blocks, std::int64_t size) {
  detail::for_each("taper::copy_blocks", exec, blocks.size(),
                   [=](const std::int64_t i) { std::copy_n(blocks(i).from, size, blocks(i).to); });
}

template <class E>
void gather_rows(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                 VectorView<const std::int32_t, E> rows) {
  TAPER_EXPECT(equal_columns<E>(y, x) && y.extent(0) == rows.size());
  detail::for_each("taper::gather_rows", exec, static_cast<int>(rows.size()),
                   [=](const int i) { std::copy_n(&x(rows(i), 0), x.extent(1), &y(i, 0)); });
}

template <class E>
void scatter_rows(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                  VectorView<const std::int32_t, E> rows) {
  TAPER_EXPECT(equal_columns<E>(y, x) && x.extent(0) == rows.size());
  detail::for_each("taper::scatter_rows", exec, static_cast<int>(rows.size()),
                   [=](const int i) { std::copy_n(&x(i, 0), x.extent(1), &y(rows(i), 0)); });
}

template <class E>
void add_rows(const E& exec, const GradientView& y, MatrixView<const float, E> x,
              VectorView<const std::int32_t, E> rows, std::int32_t first) {
  TAPER_EXPECT(y.columns == x.extent_int(1) && x.extent(0) == rows.size());
  constexpr int kStrip = 64;  // columns per task: a row's additions stay in their order
  const int columns = x.extent_int(1), n = x.extent_int(0);
  detail::for_each("taper::add_rows", exec, (columns + kStrip - 1) / kStrip, [=](const int s) {
    const int begin = s * kStrip, end = begin + kStrip < columns ? begin + kStrip : columns;
    for (int i = 0; i < n; ++i) {
      const std::int32_t row = rows(i) - first;
      if (row < 0 || row >= y.rows) continue;
      const std::int64_t at = row * y.columns;
      if (Fixed* const sums = y.fixed())
        for (int c = begin; c < end; ++c) sums[at + c] += to_fixed(x(i, c));
      else
        for (int c = begin; c < end; ++c) y.f32()[at + c] += x(i, c);
    }
  });
}

template <class E>
void copy_to_host(const E& exec, std::span<float> to, VectorView<const float, E> from) {
  TAPER_EXPECT(to.size() == from.size());
  exec.fence();
  std::copy_n(from.data(), from.size(), to.data());
}

template <class E>
void copy_from_host(const E& exec, VectorView<float, E> to, std::span<const float> from) {
  TAPER_EXPECT(to.size() == from.size());
  exec.fence();
  std::copy_n(from.data(), from.size(), to.data());
}

template <class E>
std::span<const float> host_values(const E& exec, VectorView<const float, E> x,
                                   std::vector<float>&) {
  exec.fence();
  return {x.data(), x.size()};
}

using HostRows = VectorView<const std::int32_t, HostExec>;
using HostVector = VectorView<float, HostExec>;
using ConstHostVector = VectorView<const float, HostExec>;
using HostMatrix = MatrixView<float, HostExec>;
using ConstHostMatrix = MatrixView<const float, HostExec>;

template void fill<HostExec>(const HostExec&, HostVector, float);
template void copy<HostExec>(const HostExec&, HostVector, ConstHostVector);
template void copy_blocks<HostExec>(const HostExec&, VectorView<const BlockCopy, HostExec>,
                                    std::int64_t);
template void gather_rows<HostExec>(const HostExec&, HostMatrix, ConstHostMatrix, HostRows);
template void scatter_rows<HostExec>(const HostExec&, HostMatrix, ConstHostMatrix, HostRows);
template void add_rows<HostExec>(const HostExec&, const GradientView&, ConstHostMatrix, HostRows,
                                 std::int32_t);
template void copy_to_host<HostExec>(const HostExec&, std::span<float>, ConstHostVector);
template void copy_from_host<HostExec>(const HostExec&, HostVector, std::span<const float>);
template std::span<const float> host_values<HostExec>(const HostExec&, ConstHostVector,
                                                      std::vector<float>&);

}  // namespace taper
