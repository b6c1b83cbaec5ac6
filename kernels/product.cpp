// SPDX-License-Identifier: Apache-2.0
#include "kernels/product.hpp"

#include "base/Error.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {
namespace {

// Rows of one task: enough to reuse a widened strip, few enough to keep all threads busy.
int rows_per_task(const detail::ProductArgs& args, int panels, int threads) {
  const int most = args.program == nullptr ? detail::kTaskRows : detail::kLeafRows;
  const int chunks = (args.rows + most - 1) / most;
  int chunk = (args.rows + chunks - 1) / chunks;
  while (chunk > 24 && (args.rows + chunk - 1) / chunk * panels < 2 * threads)
    chunk = (chunk + 1) / 2;
  return round_up(chunk, 6);
}

template <class E>
void launch(const char* label, const E& exec, const detail::ProductArgs& args) {
  if (args.rows == 0 || args.columns == 0) return;
  const auto task = detail::host_ops().product;
  const int panels = (args.columns + kPanelColumns - 1) / kPanelColumns;
  const int chunk = rows_per_task(args, panels, exec.concurrency());
  const int chunks = (args.rows + chunk - 1) / chunk;
  detail::for_each(label, exec, chunks * panels, [=](const int i) {
    const int begin = i / panels * chunk;
    const int end = begin + chunk < args.rows ? begin + chunk : args.rows;
    task(args, begin, end, i % panels);
  });
}

detail::ProductArgs args_of(const PackedMatrix& w) {
  detail::ProductArgs args;
  args.w = w.data;
  args.w_is_bf16 = w.type == WeightType::kBf16;
  args.w_panel = w.panel_stride;
  args.columns = w.columns;
  args.leaf_k = args.last_leaf_k = w.k;
  return args;
}

// The arguments of y = x W, all inputs in one leaf.
template <class E>
detail::ProductArgs args_of(MatrixView<float, E> y, MatrixView<const float, E> x,
                            const PackedMatrix& w) {
  TAPER_EXPECT(y.extent_int(0) == x.extent_int(0) && y.extent_int(1) == w.columns &&
               x.extent_int(1) == w.k);
  detail::ProductArgs args = args_of(w);
  args.a = x.data();
  args.a_row = x.extent(1);
  args.y = y.data();
  args.y_row = y.extent(1);
  args.rows = y.extent_int(0);
  return args;
}

}  // namespace

PackedMatrix PackedMatrix::column_slice(int begin, int end) const {
  TAPER_EXPECT(begin % kPanelColumns == 0 && end % kPanelColumns == 0 && end <= columns);
  PackedMatrix slice = *this;
  slice.data =
      static_cast<const char*>(data) + begin / kPanelColumns * panel_stride * bytes_of(type);
  slice.columns = end - begin;
  return slice;
}

PackedMatrix PackedMatrix::k_slice(int begin, int end) const {
  TAPER_EXPECT(0 <= begin && begin <= end && end <= k);
  PackedMatrix slice = *this;
  slice.data =
      static_cast<const char*>(data) + std::int64_t{begin} * kPanelColumns * bytes_of(type);
  slice.k = end - begin;
  return slice;
}

template <class E>
void multiply(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
              const PackedMatrix& w, VectorView<const float, E> bias) {
  detail::ProductArgs args = args_of<E>(y, x, w);
  args.bias = bias.data();
  launch("taper::multiply", exec, args);
}

template <class E>
void multiply_add(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                  const PackedMatrix& w) {
  detail::ProductArgs args = args_of<E>(y, x, w);
  args.accumulate = true;
  launch("taper::multiply_add", exec, args);
}

template <class E>
void multiply_leaves(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                     const PackedMatrix& w, const LeafOrder& leaves) {
  const int rows = x.extent_int(0);
  TAPER_EXPECT(y.extent_int(0) == leaves.partials * rows && y.extent_int(1) == w.columns);
  TAPER_EXPECT(x.extent_int(1) == leaves.leaves * leaves.x_stride && x.extent_int(1) == w.k);
  detail::ProductArgs args = args_of(w);
  args.a = x.data();
  args.a_row = x.extent(1);
  args.a_leaf = leaves.x_stride;
  args.w_leaf = std::int64_t{leaves.x_stride} * kPanelColumns;
  args.leaves = leaves.leaves;
  args.leaf_k = leaves.leaf_k;
  args.last_leaf_k = leaves.last_leaf_k;
  args.program = leaves.program;
  args.partials = leaves.partials;
  args.y = y.data();
  args.y_row = y.extent(1);
  args.y_partial = static_cast<std::int64_t>(rows) * y.extent(1);
  args.rows = rows;
  launch("taper::multiply_leaves", exec, args);
}

template <class E>
void accumulate_outer(const E& exec, MatrixView<float, E> gradient, MatrixView<const float, E> a,
                      MatrixView<const float, E> b) {
  TAPER_EXPECT(a.extent(0) == b.extent(0) && gradient.extent(0) == a.extent(1) &&
               gradient.extent(1) == b.extent(1));
  detail::ProductArgs args;
  args.a = a.data();
  args.a_row = 1;
  args.a_k = a.extent(1);
  args.w = b.data();
  args.w_panel = kPanelColumns;
  args.w_k = b.extent(1);
  args.leaf_k = args.last_leaf_k = a.extent_int(0);
  args.y = gradient.data();
  args.y_row = gradient.extent(1);
  args.accumulate = true;
  args.rows = gradient.extent_int(0);
  args.columns = gradient.extent_int(1);
  if (args.last_leaf_k > 0) launch("taper::accumulate_outer", exec, args);
}

namespace {

template <class Out, class T>
void pack_panel(Out* panel, const T* stored, int columns, int k_total, std::int64_t column_step,
                std::int64_t k_step) {
  for (int k = 0; k < k_total; ++k)
    for (int c = 0; c < kPanelColumns; ++c) {
      const float value = c < columns ? to_float(stored[c * column_step + k * k_step]) : 0.0f;
      if constexpr (sizeof(Out) == 2)
        panel[k * kPanelColumns + c] = to_bf16(value);
      else
        panel[k * kPanelColumns + c] = value;
    }
}

}  // namespace

template <class E, class T>
void pack_panels(const E& exec, void* packed, WeightType type, MatrixView<const T, E> stored,
                 PackOrder order) {
  const bool by_rows = order == PackOrder::kRowsAreColumns;
  const int columns = by_rows ? stored.extent_int(0) : stored.extent_int(1);
  const int k = by_rows ? stored.extent_int(1) : stored.extent_int(0);
  const std::int64_t ld = stored.extent(1);
  const std::int64_t column_step = by_rows ? ld : 1, k_step = by_rows ? 1 : ld;
  const T* source = stored.data();
  const int panels = (columns + kPanelColumns - 1) / kPanelColumns;
  detail::for_each("taper::pack_panels", exec, panels, [=](const int p) {
    const int first = p * kPanelColumns;
    const int valid = columns - first < kPanelColumns ? columns - first : kPanelColumns;
    const std::int64_t offset = static_cast<std::int64_t>(p) * k * kPanelColumns;
    if (type == WeightType::kBf16)
      pack_panel(static_cast<bf16*>(packed) + offset, source + first * column_step, valid, k,
                 column_step, k_step);
    else
      pack_panel(static_cast<float*>(packed) + offset, source + first * column_step, valid, k,
                 column_step, k_step);
  });
}

template void multiply<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                 MatrixView<const float, HostExec>, const PackedMatrix&,
                                 VectorView<const float, HostExec>);
template void multiply_add<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                     MatrixView<const float, HostExec>, const PackedMatrix&);
template void multiply_leaves<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                        MatrixView<const float, HostExec>, const PackedMatrix&,
                                        const LeafOrder&);
template void accumulate_outer<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                         MatrixView<const float, HostExec>,
                                         MatrixView<const float, HostExec>);
template void pack_panels<HostExec, float>(const HostExec&, void*, WeightType,
                                           MatrixView<const float, HostExec>, PackOrder);
template void pack_panels<HostExec, bf16>(const HostExec&, void*, WeightType,
                                          MatrixView<const bf16, HostExec>, PackOrder);

}  // namespace taper
