// SPDX-License-Identifier: Apache-2.0
#include "kernels/product.hpp"

#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/HostRounding.hpp"
#include "kernels/detail/Launch.hpp"
#include "kernels/detail/PairPanel.hpp"
#include "kernels/detail/product_args.hpp"

namespace taper {
namespace {

// Rows of one task: enough to reuse weights, few enough to keep all threads busy to the end.
int rows_per_task(const detail::ProductArgs& args, int panels, int threads) {
  constexpr int kLeast = 12, kBlock = 6;
  const int most = args.program == nullptr ? detail::kTaskRows : detail::kLeafRows;
  const auto tasks_leave_idle = [&](int chunks) {  // more than a twentieth of the threads' time
    const int tasks = chunks * panels, slots = detail::quotient_up(tasks, threads) * threads;
    return tasks * 20 < slots * 19;
  };
  int chunks = detail::quotient_up(args.rows, most);
  while (args.rows >= kLeast * (chunks + 1) && tasks_leave_idle(chunks)) ++chunks;
  return round_up(detail::quotient_up(args.rows, chunks), kBlock);
}

detail::ProductTask* task_of(const detail::HostOps& ops, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::kF32) return ops.product;
  return arithmetic == Arithmetic::kBf16 ? ops.tile_product : ops.pairs.dot_product;
}

template <class E>
void launch(const char* label, const E& exec, const detail::ProductArgs& args) {
  if (args.rows == 0 || args.columns == 0) return;
  detail::ProductTask* const task = task_of(detail::host_ops(), exec.arithmetic);
  const int panels = detail::quotient_up(args.columns, kPanelColumns);
  const int chunk = rows_per_task(args, panels, exec.concurrency());
  const int chunks = detail::quotient_up(args.rows, chunk);
  // A thread keeps in its cache the weights of a panel while rows pass by, or, if these are too
  // many to stay there as well, some rows while panels pass by.
  constexpr std::int64_t kCache = 512 << 10;
  const std::int64_t inputs = std::int64_t{args.leaf_k} * args.leaves;
  const bool by_panels = args.rows * inputs * std::int64_t{sizeof(float)} <= kCache;
  detail::for_each(label, exec, chunks * panels, [=](const int i) {
    const int begin = (by_panels ? i % chunks : i / panels) * chunk;
    const int end = begin + chunk < args.rows ? begin + chunk : args.rows;
    task(args, begin, end, by_panels ? i / chunks : i % panels);
  });
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
  detail::ProductArgs args = detail::multiply_args(y, x, w, bias.data());
  detail::round_rows(exec, args);
  launch("taper::multiply", exec, args);
}

template <class E>
void multiply_leaves(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                     const PackedMatrix& w, const LeafOrder& leaves) {
  detail::ProductArgs args = detail::multiply_leaves_args(y, x, w, leaves);
  detail::round_rows(exec, args);
  launch("taper::multiply_leaves", exec, args);
}

template <class E>
void accumulate_outer(const E& exec, const GradientView& gradient, MatrixView<const float, E> a,
                      MatrixView<const float, E> b) {
  detail::ProductArgs args = detail::accumulate_outer_args(gradient, a, b);
  if (args.last_leaf_k == 0) return;
  detail::round_outer(exec, args);
  launch("taper::accumulate_outer", exec, args);
}

namespace {

// A panel, input by input.
template <class Out, class T>
void pack_panel(Out* panel, const T* stored, int columns, int k_total, std::int64_t column_step,
                std::int64_t k_step) {
  for (int k = 0; k < k_total; ++k)
    for (int c = 0; c < kPanelColumns; ++c) {
      const float value = c < columns ? to_float(stored[c * column_step + k * k_step]) : 0.0f;
      Out& place = panel[std::int64_t{k} * kPanelColumns + c];
      if constexpr (sizeof(Out) == 2)
        place = to_bf16(value);
      else
        place = value;
    }
}

}  // namespace

template <class E, class T>
void pack_panels(const E& exec, void* packed, WeightType type, MatrixView<const T, E> stored,
                 PackOrder order) {
  const detail::StoredMatrix<T> s = detail::stored_matrix(stored, order);
  const int panels = detail::quotient_up(s.columns, kPanelColumns);
  const bool in_pairs = rounds_operands(exec.arithmetic);
  detail::for_each("taper::pack_panels", exec, panels, [=](const int p) {
    const int first = p * kPanelColumns;
    const int valid = s.columns - first < kPanelColumns ? s.columns - first : kPanelColumns;
    const std::int64_t offset = static_cast<std::int64_t>(p) * s.k * kPanelColumns;
    const T* source = s.data + first * s.column_step;
    if (type == WeightType::kF32)
      pack_panel(static_cast<float*>(packed) + offset, source, valid, s.k, s.column_step, s.k_step);
    else if (in_pairs)
      detail::pack_in_pairs(static_cast<bf16*>(packed) + offset, source, valid, s.k, s.column_step,
                            s.k_step);
    else
      pack_panel(static_cast<bf16*>(packed) + offset, source, valid, s.k, s.column_step, s.k_step);
  });
}

template void multiply<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                 MatrixView<const float, HostExec>, const PackedMatrix&,
                                 VectorView<const float, HostExec>);
template void multiply_leaves<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                        MatrixView<const float, HostExec>, const PackedMatrix&,
                                        const LeafOrder&);
template void accumulate_outer<HostExec>(const HostExec&, const GradientView&,
                                         MatrixView<const float, HostExec>,
                                         MatrixView<const float, HostExec>);
template void pack_panels<HostExec, float>(const HostExec&, void*, WeightType,
                                           MatrixView<const float, HostExec>, PackOrder);
template void pack_panels<HostExec, bf16>(const HostExec&, void*, WeightType,
                                          MatrixView<const bf16, HostExec>, PackOrder);

}  // namespace taper
